// One rule on REDUCE_AXIS.
#include "schedule/rangeify/split_reductions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"

namespace weft {
namespace {

constexpr int64_t kLeastElements = 1 << 18;  // that are worth a second kernel
constexpr int64_t kMostPieces = 256;
constexpr int64_t kLeastEach = 16;  // elements of a result of the first step

// The largest divisor of n that is not larger than `most`.
int64_t divisor_up_to(int64_t n, int64_t most) {
  for (int64_t d = std::min(n, most); d > 1; d--) {
    if (n % d == 0) return d;
  }
  return 1;
}

bool is_large_and_alone(Shape shape, std::span<const int64_t> axes, int64_t pieces) {
  int64_t reduced = 1, left = 1;
  for (size_t i = 0; i < shape.size(); i++) {
    if (!shape[i].is_int()) return false;
    const bool is_reduced = std::ranges::find(axes, int64_t(i)) != axes.end();
    (is_reduced ? reduced : left) *= shape[i].value();
  }
  return left > 0 && left < pieces && reduced >= kLeastElements;
}

// Where an axis of x lies in memory, counted from the outermost: elements and permutations of what
// is in memory are looked through.
int64_t place_in_memory(UOp x, int64_t axis) {
  while (true) {
    if (x.is(Op::PERMUTE)) {
      axis = x.ints()[size_t(axis)];
    } else if (!is_elementwise(x.op()) || x.src_count() == 0) {
      return axis;
    }
    x = x.src(0);
  }
}

// The outermost axis in memory of those that have places for all threads; -1 if none has.
int64_t outermost(UOp x, std::span<const int64_t> axes, int64_t least) {
  const Shape shape = shape_of(x);
  int64_t found = -1;
  for (const int64_t axis : axes) {
    if (divisor_up_to(shape[size_t(axis)].value(), std::max(kMostPieces, least)) < least) continue;
    if (found < 0 || place_in_memory(x, axis) < place_in_memory(x, found)) found = axis;
  }
  return found;
}

UOp in_two_steps(Match& m) {
  const UOp n = m.root(), x = n.src(0);
  const int64_t pieces = int64_t(m.context<size_t>());
  const Shape shape = shape_of(x);
  if (!is_large_and_alone(shape, n.ints(), pieces)) return {};
  // A part of the outermost axis stays, so that each thread reads memory in order. Where it has no
  // such part: the axis with the fewest places that are enough for all threads, if the others are
  // much to do for each of them, else a part of the longest.
  const int64_t outer = outermost(x, n.ints(), 4 * pieces);
  int64_t kept = -1, longest = n.ints()[0], reduced = 1;
  for (const int64_t axis : n.ints()) reduced *= shape[size_t(axis)].value();
  for (const int64_t axis : n.ints()) {
    const int64_t size = shape[size_t(axis)].value();
    if (size > shape[size_t(longest)].value()) longest = axis;
    const bool is_enough = size >= 4 * pieces && reduced / size >= kLeastEach;
    if (outer < 0 && is_enough && (kept < 0 || size < shape[size_t(kept)].value())) kept = axis;
  }
  if (outer >= 0 && shape[size_t(outer)].value() <= 4 * kMostPieces) kept = outer;
  if (outer >= 0) longest = outer;
  std::vector<int64_t> first;
  if (kept >= 0 && n.ints().size() > 1) {
    for (const int64_t axis : n.ints()) {
      if (axis != kept) first.push_back(axis);
    }
    const UOp part = contiguous(reduce_axis(n.arg_op(), x, first));
    return reduce_axis(n.arg_op(), part, {&kept, 1});
  }
  const int64_t size = shape[size_t(longest)].value();
  const int64_t parts = divisor_up_to(size, std::max(kMostPieces, 4 * pieces));
  if (parts < 2 * std::min(pieces, kMostPieces)) return {};
  std::vector<Dim> cut(shape.begin(), shape.end());  // the axis as (parts, size / parts)
  cut[size_t(longest)] = Dim(size / parts);
  cut.insert(cut.begin() + std::ptrdiff_t(longest), Dim(parts));
  for (const int64_t axis : n.ints()) {
    if (axis != longest) first.push_back(axis < longest ? axis : axis + 1);
  }
  first.push_back(longest + 1);
  std::ranges::sort(first);
  const UOp part = contiguous(reduce_axis(n.arg_op(), reshape(x, cut), first));
  const UOp all = reduce_axis(n.arg_op(), part, {&longest, 1});
  std::vector<Dim> out(shape.begin(), shape.end());
  for (const int64_t axis : n.ints()) out[size_t(axis)] = Dim(1);
  return reshape(all, out);
}

using names::x;
constexpr Rule kSplitRules[] = {
    rule("reduce-in-two-steps", op(Op::REDUCE_AXIS, x), in_two_steps),
};

}  // namespace

UOp split_reductions(UOp sink, size_t pieces) {
  static const RuleSet kRules("split reductions", {{"split reductions", kAnyDType, kSplitRules}});
  return graph_rewrite(sink, kRules, {.context = &pieces, .pass = "split reductions"});
}

}  // namespace weft
