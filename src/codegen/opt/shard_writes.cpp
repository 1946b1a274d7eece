// The owner of an element is told by its index: a gate on the write and on the reads for it.
#include "codegen/opt/shard_writes.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "codegen/opt/loops.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/reads.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/linear.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr int64_t kMostOwners = 1 << 16;

bool is_memory_store(UOp n) { return n.is(Op::STORE) && !is_register(n.src(0)); }

// The index of all writes in the range; null where they have several, or none.
UOp written_index(UOp sink, UOp range) {
  UOp found;
  for (UOp n : toposort(sink)) {
    if (!is_memory_store(n) || !is_in_scope(range, n)) continue;
    if (found && found != index_of(n)) return {};
    found = index_of(n);
  }
  return found;
}

// Elements that follow each other and have one owner: what memory tells is a multiple of that.
int64_t elements_together(UOp index) {
  int64_t grid = 0;
  if (const std::optional<LinearSum> sum = linear_sum(index)) {
    for (const Term& t : sum->terms) {
      if (reads_memory(t.base)) grid = std::gcd(grid, t.coefficient);
    }
  }
  return std::max<int64_t>(grid, 1);
}

}  // namespace

std::string why_not_shard(UOp sink, UOp range, int64_t amount) {
  if (range.axis() != AxisType::kLoop) return "its iterations do not depend on their order";
  if (amount < 2 || amount > kMostOwners) return "there are 2 to 65536 owners";
  const bool is_outermost = sink.src_count() == 1 && sink.src(0).is(Op::END) &&
                            closers_of(sink, range) == std::vector{sink.src(0)};
  if (!is_outermost) return "it is not the outermost END of all of the kernel that closes it";
  const UOp index = written_index(sink, range);
  if (!index) return "the writes in it have different indices";
  UOp base;
  for (UOp n : toposort(sink)) {
    if (n.is(Op::DEFINE_REG) || n.is(Op::DEFINE_LOCAL))
      return "there are registers, or local memory";
    if (!is_memory_store(n)) continue;
    if (base && base != place_of(n.src(0)).base) return "it writes to several arguments";
    base = place_of(n.src(0)).base;
  }
  for (UOp n : toposort(sink)) {
    if (n.is(Op::LOAD) && place_of(n.src(0)).base == base && index_of(n) != index)
      return "it reads other elements of what it writes";
  }
  return "";
}

UOp shard_writes(UOp sink, UOp range, int64_t amount, int64_t id) {
  Arena& arena = sink.arena();
  const UOp closer = sink.src(0), index = written_index(sink, range);
  const UOp owners = index_const(arena, amount);
  const UOp owner =
      arena.make(Op::RANGE, dtypes::index, {owners}, Arg::range(id, AxisType::kGlobal));
  const UOp together = index_const(arena, elements_together(index));
  const UOp gate = equal(simplify(index / together % owners), owner);
  const std::vector<UOp> told = toposort(gate);
  const std::unordered_set<UOp> before(told.begin(), told.end());
  const auto gated = [&](UOp n, std::span<const UOp> srcs) {
    const UOp made = arena.with_srcs(n, srcs);
    if (is_memory_store(n)) {
      return made.src(0).assign(made.src(1), n.src_count() == 3 ? made.src(2) & gate : gate);
    }
    if (!n.is(Op::LOAD) || is_register(n.src(0))) return made;
    if (n.src_count() == 3) return load(made.src(0), made.src(1) & gate, made.src(2));
    return load(made.src(0), gate, arena.make(Op::CONST, n.dtype(), {}, Arg::bits(0)));
  };
  const auto is_kept = [&](UOp n) { return !is_in_scope(range, n) || before.contains(n); };
  std::vector<UOp> srcs{rebuild_part(closer.src(0), is_kept, gated), owner};
  srcs.insert(srcs.end(), closer.srcs().begin() + 1, closer.srcs().end());
  const UOp made = arena.make(Op::END, dtypes::void_, srcs);
  return arena.with_srcs(sink, {&made, 1});
}

bool is_loop_of_owners(UOp sink, UOp range) {
  const std::vector<UOp> order = toposort(sink);
  return range.axis() == AxisType::kGlobal && std::ranges::any_of(order, [&](UOp n) {
           return is_memory_store(n) && place_of(n.src(0)).base.is(Op::DEFINE_GLOBAL) &&
                  is_in_scope(range, n) && !is_in_scope(range, index_of(n));
         });
}

}  // namespace weft
