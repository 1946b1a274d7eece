// A view as movement ops reads what its strides say, and what is claimed of views is so.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "value/factor.h"
#include "value/view.h"
#include "weft/view.h"

namespace weft {
namespace {

using Random = std::mt19937_64;

int64_t pick(Random& random, int64_t lo, int64_t hi) {
  return std::uniform_int_distribution<int64_t>(lo, hi)(random);
}

// The elements that a view touches, in row-major order.
std::vector<int64_t> elements(const View& view) {
  std::vector<int64_t> result{view.offset};
  for (size_t i = 0; i < view.rank(); i++) {
    std::vector<int64_t> next;
    for (const int64_t at : result) {
      for (int64_t k = 0; k < view.shape[i]; k++) next.push_back(at + k * view.strides[i]);
    }
    result = next;
  }
  return result;
}

std::vector<Dim> dims(Ints sizes) { return {sizes.begin(), sizes.end()}; }

std::vector<std::pair<Dim, Dim>> pairs(Ints numbers) {
  std::vector<std::pair<Dim, Dim>> result;
  const size_t rank = numbers.size() / 2;
  for (size_t i = 0; i < rank; i++) result.emplace_back(numbers[i], numbers[rank + i]);
  return result;
}

UOp apply(UOp x, const Movement& step) {
  if (step.op == Op::RESHAPE) return reshape(x, dims(step.shape));
  if (step.op == Op::EXPAND) return expand(x, dims(step.shape));
  if (step.op == Op::PERMUTE) return permute(x, Ints(step.numbers));
  if (step.op == Op::FLIP) return flip(x, Ints(step.numbers));
  if (step.op == Op::SHRINK) return shrink(x, pairs(step.numbers));
  const Ints numbers = step.numbers;
  return strided_view(x, dims(step.shape), dims(numbers.first(numbers.size() - 1)), numbers.back());
}

// The elements of 0, 1, 2, ... under `shape` that the steps leave, and their shape.
Array evaluate_steps(const std::vector<Movement>& steps, Ints shape, int64_t numel) {
  Arena arena;
  UOp x = reshape(iota(arena, dtypes::int64, numel), dims(shape));
  for (const Movement& step : steps) x = apply(x, step);
  verify(sink(x), Stage::kTensor);
  Bindings bindings;
  return evaluate(x, bindings).at(0);
}

Sizes random_shape(Random& random) {
  Sizes shape(size_t(pick(random, 0, 4)));
  for (int64_t& size : shape) size = pick(random, 1, 5);
  return shape;
}

int64_t count(Ints shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

// A view of views: slices, permutes, flips, expands, splits and merges of axes.
View random_view(Random& random, Ints shape) {
  View view = contiguous_view(dtypes::int64, shape);
  for (int64_t steps = pick(random, 0, 5); steps > 0; steps--) {
    if (view.rank() == 0) {
      view.shape.push_back(1);
      view.strides.push_back(pick(random, 0, 3));
      continue;
    }
    const size_t i = size_t(pick(random, 0, int64_t(view.rank()) - 1));
    const size_t j = size_t(pick(random, 0, int64_t(view.rank()) - 1));
    const int64_t what = pick(random, 0, 6);
    if (what == 0) {  // a slice with a step
      const int64_t step = pick(random, 1, 3), start = pick(random, 0, view.shape[i] - 1);
      const int64_t most = (view.shape[i] - 1 - start) / step + 1;
      view.offset += start * view.strides[i];
      view.strides[i] *= step;
      view.shape[i] = pick(random, 1, most);
    } else if (what == 1) {
      view.offset += (view.shape[i] - 1) * view.strides[i];
      view.strides[i] = -view.strides[i];
    } else if (what == 2) {
      std::swap(view.shape[i], view.shape[j]);
      std::swap(view.strides[i], view.strides[j]);
    } else if (what == 3 && view.rank() < 5) {
      view.shape.insert(i, pick(random, 1, 3));
      view.strides.insert(i, 0);
    } else if (what == 4 && i != j) {  // a diagonal
      view.shape[i] = std::min(view.shape[i], view.shape[j]);
      view.strides[i] += view.strides[j];
      view.shape.erase(j);
      view.strides.erase(j);
    } else if (what == 5) {
      view.offset += pick(random, 0, view.shape[i] - 1) * view.strides[i];
      view.shape.erase(i);
      view.strides.erase(i);
    } else if (what == 6) {
      if (std::optional<View> flat = reshape_view(view, {view.numel()})) view = *flat;
    }
  }
  return view;
}

constexpr int kCases = 3000;

TEST(ViewFactors, movement_ops_read_what_strides_say) {
  Random random(1);
  int strided = 0;
  for (int i = 0; i < kCases; i++) {
    const Sizes shape = random_shape(random);
    const View view = random_view(random, shape);
    const std::vector<Movement> steps = factor(view, shape);
    const Array got = evaluate_steps(steps, shape, count(shape));
    ASSERT_EQ(got.ints(), elements(view)) << i;
    ASSERT_EQ(Sizes(Ints(got.shape)), view.shape) << i;
    strided += !steps.empty() && steps[0].op == Op::VIEW;
  }
  EXPECT_LT(strided, kCases / 4);
}

TEST(ViewFactors, nothing_is_done_that_does_nothing) {
  EXPECT_TRUE(factor(contiguous_view(dtypes::int8, {2, 3}), Ints{2, 3}).empty());
  EXPECT_TRUE(factor(contiguous_view(dtypes::int8, {}), Ints{}).empty());
  const auto ops = [](const View& view, Ints shape) {
    std::vector<Op> result;
    for (const Movement& step : factor(view, shape)) result.push_back(step.op);
    return result;
  };
  using Ops = std::vector<Op>;
  const DType t = dtypes::int8;
  EXPECT_EQ(ops({t, {3, 2}, {1, 3}, 0}, {2, 3}), Ops{Op::PERMUTE});
  EXPECT_EQ(ops({t, {6}, {1}, 0}, {2, 3}), Ops{Op::RESHAPE});
  EXPECT_EQ(ops({t, {2, 2}, {3, 1}, 1}, {2, 3}), Ops{Op::SHRINK});
  EXPECT_EQ(ops({t, {3}, {1}, 3}, {2, 3}), (Ops{Op::SHRINK, Op::RESHAPE}));
  EXPECT_EQ(ops({t, {2, 3}, {-3, 1}, 3}, {2, 3}), Ops{Op::FLIP});
  EXPECT_EQ(ops({t, {4, 3}, {0, 1}, 0}, {3}), (Ops{Op::RESHAPE, Op::EXPAND}));
  EXPECT_EQ(ops({t, {4}, {2}, 0}, {8}), (Ops{Op::RESHAPE, Op::SHRINK, Op::RESHAPE}));
  EXPECT_EQ(ops({t, {4}, {5}, 0}, {4, 4}), Ops{Op::VIEW});
}

TEST(ViewFactors, the_inverse_of_a_dense_view) {
  Random random(2);
  int dense = 0;
  for (int i = 0; i < kCases; i++) {
    const Sizes shape = random_shape(random);
    const View view = random_view(random, shape);
    if (view.numel() != count(shape) || !is_dense(view)) continue;
    dense++;
    std::vector<int64_t> at(size_t(view.numel()));
    const std::vector<int64_t> touched = elements(view);
    for (size_t k = 0; k < touched.size(); k++) at[size_t(touched[k])] = int64_t(k);
    const Array got = evaluate_steps(factor_inverse(view, shape), view.shape, view.numel());
    ASSERT_EQ(got.ints(), at) << i;
    ASSERT_EQ(Sizes(Ints(got.shape)), shape) << i;
  }
  EXPECT_GT(dense, kCases / 20);
}

TEST(ViewFactors, what_is_said_of_views_is_so) {
  Random random(3);
  for (int i = 0; i < kCases; i++) {
    const View view = random_view(random, random_shape(random));
    const std::vector<int64_t> touched = elements(view);
    const std::set<int64_t> distinct(touched.begin(), touched.end());
    const Hull hull = hull_of(view);
    ASSERT_EQ(hull.lo, *distinct.begin());
    ASSERT_EQ(hull.hi, *distinct.rbegin() + 1);
    ASSERT_EQ(is_dense(view),
              int64_t(touched.size()) == hull.hi - hull.lo && distinct.size() == touched.size());
    if (is_injective(view)) {
      ASSERT_EQ(distinct.size(), touched.size());
    }
    ASSERT_EQ(has_overlap(view), distinct.size() != touched.size());
    std::vector<int64_t> in_order(touched.size());
    std::iota(in_order.begin(), in_order.end(), view.offset);
    ASSERT_EQ(is_contiguous(view), touched == in_order);
    const std::vector<int64_t> once = elements(without_expanded_axes(view));
    ASSERT_EQ(std::set<int64_t>(once.begin(), once.end()), distinct);
  }
}

TEST(ViewFactors, one_view_within_another) {
  Random random(4);
  int found = 0, apart = 0;
  for (int i = 0; i < 10 * kCases; i++) {
    const Sizes shape = random_shape(random);
    const View outer = random_view(random, shape), inner = random_view(random, shape);
    const std::vector<int64_t> out = elements(outer), in = elements(inner);
    if (const std::optional<View> within = view_within(outer, inner)) {
      std::vector<int64_t> read;
      for (const int64_t k : elements(*within)) read.push_back(out.at(size_t(k)));
      ASSERT_EQ(read, in) << i;
      found++;
    }
    if (are_disjoint(outer, inner)) {
      const std::set<int64_t> distinct(out.begin(), out.end());
      for (const int64_t k : in) ASSERT_FALSE(distinct.contains(k)) << i;
      apart++;
    }
  }
  EXPECT_GT(found, kCases);
  EXPECT_GT(apart, kCases / 2);
}

TEST(ViewFactors, reshaped_views_read_the_same) {
  Random random(5);
  int views = 0;
  for (int i = 0; i < kCases; i++) {
    const View view = random_view(random, random_shape(random));
    Sizes to;
    for (int64_t left = view.numel(); left > 1;) {
      int64_t size = pick(random, 1, left);
      while (left % size != 0) size++;
      to.push_back(size);
      left /= size;
    }
    if (const std::optional<View> reshaped = reshape_view(view, to)) {
      ASSERT_EQ(elements(*reshaped), elements(view)) << i;
      views++;
    } else {
      ASSERT_FALSE(is_contiguous(view));
    }
  }
  EXPECT_GT(views, kCases / 2);
}

TEST(ViewFactors, past_32_bits) {
  const int64_t n = int64_t(1) << 20;
  const View view{dtypes::int8, {n, n}, {1, n}, 0};
  const std::vector<Movement> steps = factor(view, Ints{n, n});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].op, Op::PERMUTE);
  EXPECT_EQ(hull_of(view).hi, n * n);
  EXPECT_TRUE(is_dense(view));
}

TEST(ViewFactors, thirty_axes) {
  Sizes shape(30, 1);
  shape[3] = shape[17] = 2;
  View view = contiguous_view(dtypes::int8, shape);
  std::swap(view.shape[3], view.shape[4]);
  std::swap(view.strides[3], view.strides[4]);
  const Array got = evaluate_steps(factor(view, shape), shape, 4);
  EXPECT_EQ(got.ints(), elements(view));
  EXPECT_EQ(Sizes(Ints(got.shape)), view.shape);
}

}  // namespace
}  // namespace weft
