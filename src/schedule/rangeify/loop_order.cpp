// A reduction that is used by every iteration of a loop which it does not depend on stands outside
// of that loop.
#include "schedule/rangeify/loop_order.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "schedule/rangeify/stored_values.h"

namespace weft {

bool has_range(std::span<const UOp> set, UOp range) {
  return std::ranges::find(set, range) != set.end();
}

bool is_subset(std::span<const UOp> a, std::span<const UOp> b) {
  return std::ranges::all_of(a, [&](UOp r) { return has_range(b, r); });
}

std::vector<UOp> loops_of(std::span<const UOp> ranges) {
  std::vector<UOp> out;
  for (UOp r : ranges) {
    if (r.is(Op::RANGE)) out.push_back(r);
  }
  return out;
}

std::span<const UOp> up_to_last(std::span<const UOp> loops, std::span<const UOp> used) {
  size_t count = loops.size();
  while (count > 0 && !has_range(used, loops[count - 1])) count--;
  return loops.first(count);
}

std::vector<UOp> order_loops(std::span<const UOp> loops, std::span<const RangeSet> around) {
  std::vector<UOp> out(loops.begin(), loops.end());
  const auto nests = [&](const RangeSet& a) {
    return std::ranges::all_of(
        around, [&](const RangeSet& b) { return is_subset(a, b) || is_subset(b, a); });
  };
  if (!std::ranges::all_of(around, nests)) return out;
  std::ranges::stable_sort(out, std::ranges::greater(), [&](UOp r) {
    return std::ranges::count_if(around, [&](const RangeSet& a) { return has_range(a, r); });
  });
  return out;
}

std::vector<RangeSet> loops_around_reductions(UOp value, std::span<const UOp> loops) {
  std::vector<RangeSet> out;
  bool has_register = false;
  const UOp roots[] = {value};
  visit_computation(roots, [&](UOp n) {
    has_register = has_register || n.is(Op::DEFINE_REG);
    // Local memory that each iteration of some loops has for itself is filled for all others.
    const bool is_opened = n.is(Op::AFTER) && n.src(0).is(Op::DEFINE_LOCAL);
    if (!n.is(Op::REDUCE) && !is_opened) return;
    const std::span<const UOp> around = ranges_of(n);
    if (around.size() >= loops.size() || !is_subset(around, loops)) return;
    RangeSet set(around.begin(), around.end());
    if (std::ranges::find(out, set) == out.end()) out.push_back(std::move(set));
  });
  // What goes from one iteration to the next in a register needs the order as it is.
  if (has_register) out.clear();
  return out;
}

}  // namespace weft
