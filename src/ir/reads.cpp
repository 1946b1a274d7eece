// Reads, sources first, down to memory.
#include "ir/reads.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/huge_vector.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"

namespace weft {
namespace {

struct ReadsTable : Facts {
  static constexpr FactSlot kSlot = FactSlot::kReads;
  HugeVector<uint8_t> of;  // 0: not computed; else 1 + Reads

  size_t bytes() const override { return of.capacity(); }
  bool has(UOp n) const { return n.id() < of.size() && of[n.id()] != 0; }
  void put(UOp n, Reads r) {
    if (n.id() >= of.size()) of.resize(std::max<size_t>(n.arena().size(), of.size() * 3 / 2));
    of[n.id()] = uint8_t(1 + uint8_t(r));
  }
  Reads get(UOp n) const { return Reads(of[n.id()] - 1); }
};

constexpr OpSet kNoReads = {Op::CONST, Op::RANGE, Op::VARIABLE, Op::BUFFER, Op::BUFFERIZE};

}  // namespace

Reads reads_of(UOp root) {
  auto& table = root.arena().facts<ReadsTable>();
  const auto is_known = [&](UOp n) {
    if (table.has(n)) return true;
    if (kNoReads.has(n.op())) {
      table.put(n, Reads::kNothing);
    } else if (n.is(Op::LOAD) || n.is(Op::AFTER) || (n.is(Op::INDEX) && !n.src(0).is(Op::BUFFER))) {
      table.put(n, Reads::kMemory);
    } else {
      return false;
    }
    return true;
  };
  visit_missing(root, is_known, [&](UOp n) {
    Reads all = n.is(Op::INDEX) ? Reads::kBuffers : Reads::kNothing;
    for (UOp s : n.srcs()) all = std::max(all, table.get(s));
    table.put(n, all);
  });
  return table.get(root);
}

bool is_gather(UOp n) {
  return n.is(Op::INDEX) && !n.dtype().is_pointer() && n.src_count() > 1 &&
         std::ranges::any_of(n.srcs().subspan(1), [](UOp i) { return !i.dtype().is_index(); });
}

}  // namespace weft
