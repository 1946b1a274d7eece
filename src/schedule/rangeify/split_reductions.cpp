// One rule on REDUCE_AXIS.
#include "schedule/rangeify/split_reductions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>
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
// The same where results lie side by side, and of what is cut.
constexpr int64_t kLeastAcross = 128, kLeastBeside = 1024;

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

enum class PartsLie : uint8_t { kWhereTheAxisLay, kOutermost };

// The reduction with its longest axis cut in parts: first those, then over them.
UOp by_parts(UOp n, int64_t longest, int64_t parts, PartsLie where) {
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
  UOp part = reduce_axis(n.arg_op(), reshape(x, cut), first);
  int64_t over = longest;
  if (where == PartsLie::kOutermost) {
    std::vector<int64_t> order(cut.size());
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin(), order.begin() + std::ptrdiff_t(longest),
                order.begin() + std::ptrdiff_t(longest) + 1);
    if (longest != 0) part = permute(part, order);
    over = 0;
  }
  const UOp all = reduce_axis(n.arg_op(), contiguous(part), {&over, 1});
  std::vector<Dim> out(shape.begin(), shape.end());
  for (const int64_t axis : n.ints()) out[size_t(axis)] = Dim(1);
  return reshape(all, out);
}

// Axes that lie in memory as one: the axis of a RESHAPE's source that an axis of its result is.
std::optional<size_t> axis_before_reshape(Shape from, Shape to, size_t axis) {
  const auto behind = [](Shape shape, size_t i) {
    int64_t product = 1;
    for (size_t k = i + 1; k < shape.size(); k++) {
      product *= shape[k].is_int() ? shape[k].value() : 0;
    }
    return product;
  };
  const int64_t wanted = behind(to, axis);
  for (size_t i = from.size(); i-- > 0;) {
    const bool is_one = from[i].is_int() && from[i].value() == 1;
    if (!is_one && behind(from, i) == wanted && (wanted == 1 || from[i] == to[axis])) return i;
  }
  return {};
}

// Bytes that are read in order along an axis of x.
double bytes_in_order(UOp x, size_t axis) {
  double out = 0;
  std::set<std::pair<uint32_t, size_t>> seen;
  std::vector<std::pair<UOp, size_t>> todo{{x, axis}};
  while (!todo.empty()) {
    const auto [n, i] = todo.back();
    todo.pop_back();
    if (!seen.emplace(n.id(), i).second) continue;
    const Shape shape = shape_of(n);
    if (i >= shape.size()) continue;  // a scalar
    if (n.is(Op::PERMUTE)) {
      todo.emplace_back(n.src(0), size_t(n.ints()[i]));
    } else if (n.is(Op::RESHAPE)) {
      const auto before = axis_before_reshape(shape_of(n.src(0)), shape, i);
      if (before) todo.emplace_back(n.src(0), *before);
    } else if (n.is(Op::EXPAND)) {
      if (shape_of(n.src(0))[i] == shape[i]) todo.emplace_back(n.src(0), i);
    } else if (n.is(Op::PAD) || n.is(Op::SHRINK) || n.is(Op::FLIP)) {
      todo.emplace_back(n.src(0), i);
    } else if (is_elementwise(n.op())) {
      for (UOp s : n.srcs()) todo.emplace_back(s, i);
    } else {
      double elements = 1;
      bool is_last = true;
      for (size_t k = 0; k < shape.size(); k++) {
        if (!shape[k].is_int()) return 0;
        elements *= double(shape[k].value());
        is_last = is_last && (k <= i || shape[k].value() == 1);
      }
      if (is_last) out += elements * double(n.dtype().item_bytes());
    }
  }
  return out;
}

// Whether x is the same for all places of an axis.
bool is_repeated(UOp x, size_t axis) {
  while (true) {
    if (x.is(Op::PERMUTE)) {
      axis = size_t(x.ints()[axis]);
    } else if (x.is(Op::EXPAND)) {
      const Shape before = shape_of(x.src(0));
      if (before[axis].is_int() && before[axis].value() == 1) return true;
    } else if (!x.is(Op::CAST)) {
      return false;
    }
    x = x.src(0);
  }
}

bool is_narrow(UOp x) {
  while (x.is(Op::EXPAND) || x.is(Op::PERMUTE) || x.is(Op::RESHAPE)) x = x.src(0);
  return x.is(Op::CAST) &&
         (x.src(0).dtype() == dtypes::float16 || x.src(0).dtype() == dtypes::bfloat16);
}

// A product of narrow floats with so few tiles of results that most of the device would wait while
// each goes along a long sum: parts of the sum are further tiles.
UOp product_by_parts(UOp n, const Parallelism& device) {
  constexpr int64_t rows_of_tile = 128, columns_of_tile = 64, least_rows = 8, least_depth = 512;
  constexpr int64_t iterations_of_tile = 512;  // that it is worth of what keeps the device busy
  constexpr double depth_ns = 5.5;             // of a tile
  constexpr double launch_ns = 3000, bytes_per_ns = 3000;
  const UOp x = n.src(0);
  const Shape shape = shape_of(x);
  if (n.arg_op() != Op::ADD || !x.is(Op::MUL) || !is_narrow(x.src(0)) || !is_narrow(x.src(1)))
    return {};
  int64_t rows = 1, columns = 1, others = 1, reduced = 1;
  size_t longest = size_t(n.ints()[0]);
  for (size_t i = 0; i < shape.size(); i++) {
    const int64_t size = shape[i].value();
    if (std::ranges::find(n.ints(), int64_t(i)) != n.ints().end()) {
      reduced *= size;
      if (size > shape[longest].value()) longest = i;
      continue;
    }
    const bool a = is_repeated(x.src(0), i), b = is_repeated(x.src(1), i);
    (a == b ? others : b ? rows : columns) *= size;
  }
  if (rows > columns) std::swap(rows, columns);
  if (rows < least_rows || columns < columns_of_tile) return {};
  const auto count = [](int64_t size, int64_t of) { return (size + of - 1) / of; };
  const int64_t tiles = others * count(rows, rows_of_tile) * count(columns, columns_of_tile);
  const int64_t busy = tiles * iterations_of_tile;
  if (tiles == 0 || busy >= device.iterations) return {};
  const int64_t most = std::min(2 * device.iterations / busy, reduced / least_depth);
  const int64_t parts = divisor_up_to(shape[longest].value(), most);
  if (parts < 2) return {};
  const double gained = double(reduced) * depth_ns * (1 - 1 / double(parts));
  const double bytes = double(parts) * double(others * rows * columns) * 8;
  if (gained < launch_ns + bytes / bytes_per_ns) return {};
  return by_parts(n, int64_t(longest), parts, PartsLie::kOutermost);
}

// Threads go along results that lie side by side, and none share a reduction: where those are too
// few to keep the device busy, each is reduced in parts.
UOp reduce_beside(UOp n, const Parallelism& device) {
  const UOp x = n.src(0);
  const Shape shape = shape_of(x);
  int64_t left = 1, reduced = 1;
  size_t longest = size_t(n.ints()[0]);
  std::vector<size_t> kept;
  for (size_t i = 0; i < shape.size(); i++) {
    if (!shape[i].is_int()) return {};
    const int64_t size = shape[i].value();
    if (std::ranges::find(n.ints(), int64_t(i)) == n.ints().end()) {
      left *= size;
      if (size >= kLeastAcross) kept.push_back(i);
    } else {
      reduced *= size;
      if (size > shape[longest].value()) longest = i;
    }
  }
  if (left == 0) return {};
  if (const UOp parts = product_by_parts(n, device)) return parts;
  if (left >= device.iterations || reduced < kLeastBeside) return {};
  double beside = 0;
  for (const size_t i : kept) beside = std::max(beside, bytes_in_order(x, i));
  if (beside == 0 || bytes_in_order(x, longest) >= beside) return {};
  const int64_t most = std::min(4 * device.iterations / left, reduced / kLeastAcross);
  const int64_t parts = divisor_up_to(shape[longest].value(), most);
  return parts < 2 ? UOp() : by_parts(n, int64_t(longest), parts, PartsLie::kOutermost);
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
  const auto& device = m.context<Parallelism>();
  const int64_t pieces = device.pieces;
  const Shape shape = shape_of(x);
  if (!is_large_and_alone(shape, n.ints(), pieces)) return reduce_beside(n, device);
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
  return by_parts(n, longest, parts, PartsLie::kWhereTheAxisLay);
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
