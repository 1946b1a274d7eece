// The bounds of all indices of an argument, taken off them.
#include "codegen/relative_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/spec.h"
#include "ir/walk.h"

namespace weft {
namespace {

// What of an argument the kernel can name.
struct Reach {
  UOp definition;
  int64_t first = Interval::kHigh, last = Interval::kLow;
  bool is_fixed = false;

  int64_t size() const { return definition.src(0).const_int(); }
  bool moves() const {
    return !is_fixed && first >= 0 && first <= last && last < size() &&
           (first > 0 || last + 1 < size());
  }
  int64_t offset() const { return moves() ? first : 0; }
};

using Reaches = std::unordered_map<int64_t, Reach>;  // by argument

bool is_pointer(UOp n) { return n.is(Op::DEFINE_GLOBAL) && n.dtype().is_pointer(); }

void note_definition(UOp n, Reaches& reaches) {
  Reach& reach = reaches[n.number()];
  const bool is_other = reach.definition && reach.definition != n;
  reach.is_fixed = reach.is_fixed || is_other || !n.src(0).is_const();
  reach.definition = n;
}

// Sources of n that are memory.
void note_uses(UOp n, Reaches& reaches) {
  for (size_t i = 0; i < n.src_count(); i++) {
    const UOp source = n.src(i);
    if (!source.dtype().is_pointer()) continue;
    const UOp base = place_of(source).base;
    if (!is_pointer(base)) continue;
    Reach& reach = reaches[base.number()];
    if (n.is(Op::INDEX) && i == 0 && n.src_count() == 2 && !place_of(source).is_indexed) {
      const Interval named = bounds(n.src(1));
      reach.first = std::min(reach.first, named.lo);
      reach.last = std::max(reach.last, named.hi);
      continue;
    }
    // An AFTER of memory stands for it, and so does an INDEX for what it names.
    const bool passes_on = (n.is(Op::AFTER) && i == 0) || place_of(source).is_indexed;
    reach.is_fixed = reach.is_fixed || !passes_on;
  }
}

// A sum has its constant last.
UOp less(Arena& arena, UOp index, int64_t offset) {
  const auto number = [&](int64_t value) {
    return arena.make(Op::CONST, index.dtype(), {}, Arg::bits(uint64_t(value)));
  };
  if (index.is_const()) return number(index.const_int() - offset);
  const bool has_constant = index.is(Op::ADD) && index.src(1).is_const();
  const UOp rest = has_constant ? index.src(0) : index;
  const int64_t left = (has_constant ? index.src(1).const_int() : 0) - offset;
  return left == 0 ? rest : arena.make(Op::ADD, index.dtype(), {rest, number(left)});
}

}  // namespace

RelativeKernel relative_kernel(UOp ast) {
  Reaches reaches;
  size_t arguments = 0;
  const std::vector<UOp> order = toposort(ast);
  for (UOp n : order) {
    if (is_pointer(n)) note_definition(n, reaches);
    if (n.is(Op::DEFINE_GLOBAL)) arguments = std::max(arguments, size_t(n.number()) + 1);
    note_uses(n, reaches);
  }
  RelativeKernel out{ast, std::vector<int64_t>(arguments)};
  bool moves = false;
  for (const auto& [number, reach] : reaches) {
    out.offsets[size_t(number)] = reach.offset();
    moves = moves || reach.moves();
  }
  if (!moves) return out;
  Arena& arena = ast.arena();
  out.root = rebuild(ast, [&](UOp n, std::vector<UOp>& srcs) {
    if (is_pointer(n) && reaches[n.number()].moves()) {
      const Reach& reach = reaches[n.number()];
      srcs[0] = index_const(arena, reach.last + 1 - reach.first);
    }
    if (n.is(Op::INDEX) && n.src_count() == 2) {
      const UOp base = place_of(n).base;
      if (is_pointer(base)) srcs[1] = less(arena, srcs[1], reaches[base.number()].offset());
    }
    return arena.with_srcs(n, srcs);
  });
  verify(out.root, Stage::kKernel, "relative");
  return out;
}

}  // namespace weft
