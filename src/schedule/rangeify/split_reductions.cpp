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
constexpr int64_t kLeastAcross = 128;  // the same where results lie side by side

struct Parallelism {
  int64_t pieces, iterations;
};

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

// The reduction with its longest axis cut in parts: first those, then over them.
UOp by_parts(UOp n, int64_t longest, int64_t parts) {
  const UOp x = n.src(0);
  const Shape shape = shape_of(x);
  std::vector<int64_t> first;
  std::vector<Dim> cut(shape.begin(), shape.end());  // the axis as (parts, size / parts)
  cut[size_t(longest)] = Dim(shape[size_t(longest)].value() / parts);
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

// Threads go along results that lie side by side, and none share a reduction: where those are too
// few to keep the device busy, each is reduced in parts.
UOp reduce_beside(UOp n, const Parallelism& device) {
  const Shape shape = shape_of(n.src(0));
  int64_t left = 1, longest = n.ints()[0];
  for (size_t i = 0; i < shape.size(); i++) {
    if (!shape[i].is_int()) return {};
    const bool is_reduced = std::ranges::find(n.ints(), int64_t(i)) != n.ints().end();
    if (!is_reduced) left *= shape[i].value();
    if (is_reduced && shape[i].value() > shape[size_t(longest)].value()) longest = int64_t(i);
  }
  const auto last = int64_t(shape.size()) - 1;
  const bool is_beside = std::ranges::find(n.ints(), last) == n.ints().end() &&
                         shape[size_t(last)].value() >= kLeastAcross;
  if (!is_beside || left >= device.iterations) return {};
  const int64_t size = shape[size_t(longest)].value();
  const int64_t parts =
      divisor_up_to(size, std::min(4 * device.iterations / left, size / kLeastAcross));
  return parts < 2 ? UOp() : by_parts(n, longest, parts);
}

UOp in_two_steps(Match& m) {
  const UOp n = m.root(), x = n.src(0);
  const auto& device = m.context<Parallelism>();
  const int64_t pieces = device.pieces;
  const Shape shape = shape_of(x);
  if (!is_large_and_alone(shape, n.ints(), pieces)) return reduce_beside(n, device);
  // The axis with the fewest places that are enough for all threads stays, if the others are much
  // to do for each of them, else a part of the longest.
  int64_t kept = -1, longest = n.ints()[0], reduced = 1;
  for (const int64_t axis : n.ints()) reduced *= shape[size_t(axis)].value();
  for (const int64_t axis : n.ints()) {
    const int64_t size = shape[size_t(axis)].value();
    if (size > shape[size_t(longest)].value()) longest = axis;
    const bool is_enough = size >= 4 * pieces && reduced / size >= kLeastEach;
    if (is_enough && (kept < 0 || size < shape[size_t(kept)].value())) kept = axis;
  }
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
  return by_parts(n, longest, parts);
}

using names::x;
constexpr Rule kSplitRules[] = {
    rule("reduce-in-two-steps", op(Op::REDUCE_AXIS, x), in_two_steps),
};

}  // namespace

UOp split_reductions(UOp sink, size_t pieces, size_t iterations) {
  static const RuleSet kRules("split reductions", {{"split reductions", kAnyDType, kSplitRules}});
  Parallelism device{int64_t(pieces), int64_t(iterations)};
  return graph_rewrite(sink, kRules, {.context = &device, .pass = "split reductions"});
}

}  // namespace weft
