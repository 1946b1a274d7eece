// Arithmetic of strides.
#include "value/view.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "ir/dtype.h"
#include "value/number_watch.h"
#include "weft/small_vector.h"
#include "weft/view.h"

namespace weft {
namespace {

// An axis of more than one element that does not repeat them.
struct Axis {
  int64_t size, stride;
};
using AxisList = SmallVector<Axis, 6>;

AxisList moving_axes(const View& view) {
  AxisList axes;
  for (size_t i = 0; i < view.rank(); i++) {
    if (view.shape[i] > 1 && view.strides[i] != 0) axes.push_back({view.shape[i], view.strides[i]});
  }
  return axes;
}

// With strides made positive, largest first.
AxisList descending_axes(const View& view) {
  AxisList axes = moving_axes(view);
  for (Axis& axis : axes) axis.stride = std::abs(axis.stride);
  std::sort(axes.begin(), axes.end(), [](Axis a, Axis b) { return a.stride > b.stride; });
  return axes;
}

}  // namespace

Sizes contiguous_strides(Ints shape) {
  Sizes strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

View contiguous_view(DType dtype, Ints shape) {
  return {dtype, Sizes(shape), contiguous_strides(shape), 0};
}

bool is_contiguous(const View& view) {
  int64_t stride = 1;
  for (size_t i = view.rank(); i-- > 0;) {
    if (view.shape[i] == 0) return true;
    if (view.shape[i] > 1 && view.strides[i] != stride) return false;
    stride *= view.shape[i];
  }
  return true;
}

Hull hull_of(const View& view) {
  Hull hull{view.offset, view.offset + 1};
  for (size_t i = 0; i < view.rank(); i++) {
    const int64_t reach = (view.shape[i] - 1) * view.strides[i];
    (reach < 0 ? hull.lo : hull.hi) += reach;
  }
  return hull;
}

bool is_expanded(const View& view) {
  if (view.numel() == 0) return false;
  for (size_t i = 0; i < view.rank(); i++) {
    if (view.shape[i] > 1 && view.strides[i] == 0) return true;
  }
  return false;
}

View without_expanded_axes(const View& view) {
  View kept{view.dtype, {}, {}, view.offset};
  for (size_t i = 0; i < view.rank(); i++) {
    if (view.strides[i] == 0 && view.shape[i] > 1) continue;
    kept.shape.push_back(view.shape[i]);
    kept.strides.push_back(view.strides[i]);
  }
  return kept;
}

bool is_dense(const View& view) {
  if (is_expanded(view)) return false;
  const AxisList axes = descending_axes(view);
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].stride != stride) return false;
    stride *= axes[i].size;
  }
  return true;
}

bool is_injective(const View& view) {
  if (is_expanded(view)) return false;
  const AxisList axes = descending_axes(view);
  int64_t reach = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].stride <= reach) return false;
    reach += axes[i].stride * (axes[i].size - 1);
  }
  return true;
}

bool has_overlap(const View& view) {
  if (view.numel() <= 1 || is_injective(view)) return false;
  if (view.numel() > kMostCompared || is_expanded(view)) return true;
  std::vector<int64_t> touched{view.offset};
  for (size_t i = 0; i < view.rank(); i++) {
    const size_t before = touched.size();
    for (int64_t k = 1; k < view.shape[i]; k++) {
      for (size_t j = 0; j < before; j++) touched.push_back(touched[j] + k * view.strides[i]);
    }
  }
  std::sort(touched.begin(), touched.end());
  return std::adjacent_find(touched.begin(), touched.end()) != touched.end();
}

namespace {

// Where a view begins and ends on every axis of a grid whose strides divide each other. Empty when
// an axis of the view runs past the end of one of the grid.
struct Box {
  Sizes first, last;
};
std::optional<Box> box_on_grid(const View& view, const Sizes& grid) {
  Box box{Sizes(grid.size()), Sizes(grid.size())};
  int64_t at = hull_of(view).lo;
  for (size_t i = 0; i < grid.size(); i++) {
    box.first[i] = box.last[i] = at / grid[i];
    at %= grid[i];
  }
  for (const Axis axis : moving_axes(view)) {
    const auto* found = std::find(grid.begin(), grid.end(), std::abs(axis.stride));
    box.last[size_t(found - grid.begin())] += axis.size - 1;
  }
  for (size_t i = 1; i < grid.size(); i++) {
    if (box.last[i] >= grid[i - 1] / grid[i]) return std::nullopt;
  }
  return box;
}

}  // namespace

bool are_disjoint(const View& a, const View& b) {
  const Hull ha = hull_of(a), hb = hull_of(b);
  if (ha.hi <= hb.lo || hb.hi <= ha.lo) return true;
  Sizes grid;
  for (const View* view : {&a, &b}) {
    for (const Axis axis : moving_axes(*view)) grid.push_back(std::abs(axis.stride));
  }
  int64_t divisor = 0;
  for (const int64_t stride : grid) divisor = std::gcd(divisor, stride);
  if (divisor == 0) return a.offset != b.offset;
  if ((a.offset - b.offset) % divisor != 0) return true;
  grid.push_back(1);
  std::sort(grid.begin(), grid.end(), std::greater<>());
  grid.resize(size_t(std::unique(grid.begin(), grid.end()) - grid.begin()));
  for (size_t i = 1; i < grid.size(); i++) {
    if (grid[i - 1] % grid[i] != 0) return false;
  }
  const std::optional<Box> box_a = box_on_grid(a, grid), box_b = box_on_grid(b, grid);
  if (!box_a || !box_b) return false;
  for (size_t i = 0; i < grid.size(); i++) {
    if (box_a->last[i] < box_b->first[i] || box_b->last[i] < box_a->first[i]) return true;
  }
  return false;
}

namespace {

// An axis of `outer` counted upwards in memory, and what a step along it is in row-major order.
struct Coordinate {
  int64_t size, stride, step;
  int64_t lo, hi;  // of the inner view
};
using Coordinates = SmallVector<Coordinate, 6>;

// The axes of a view, those that lie in one line merged, largest strides first; `first` becomes the
// place in row-major order of the lowest element.
Coordinates coordinates_of(const View& outer, int64_t& first) {
  Coordinates axes;
  const Sizes steps = contiguous_strides(outer.shape);
  first = 0;
  for (size_t i = 0; i < outer.rank(); i++) {
    const int64_t size = outer.shape[i], stride = outer.strides[i];
    if (size == 1) continue;
    if (!axes.empty() && axes.back().stride == stride * size) {
      axes.back() = {axes.back().size * size, stride, steps[i], 0, 0};
    } else {
      axes.push_back({size, stride, steps[i], 0, 0});
    }
  }
  for (Coordinate& axis : axes) {
    if (axis.stride > 0) continue;
    first += (axis.size - 1) * axis.step;
    axis.stride = -axis.stride;
    axis.step = -axis.step;
  }
  std::sort(axes.begin(), axes.end(),
            [](const Coordinate& a, const Coordinate& b) { return a.stride > b.stride; });
  return axes;
}

}  // namespace

std::optional<View> view_within(const View& outer, const View& inner) {
  if (!is_injective(outer)) return std::nullopt;
  View result{inner.dtype, inner.shape, Sizes(inner.rank()), 0};
  Coordinates axes = coordinates_of(outer, result.offset);
  int64_t rest = inner.offset - hull_of(outer).lo;
  if (rest < 0) return std::nullopt;
  for (Coordinate& axis : axes) {
    axis.lo = axis.hi = std::min(rest / axis.stride, axis.size - 1);
    rest -= axis.lo * axis.stride;
    result.offset += axis.lo * axis.step;
  }
  if (rest != 0) return std::nullopt;
  for (size_t i = 0; i < inner.rank(); i++) {
    if (inner.shape[i] == 1 || inner.strides[i] == 0) continue;
    const int64_t sign = inner.strides[i] < 0 ? -1 : 1;
    int64_t left = std::abs(inner.strides[i]);
    for (Coordinate& axis : axes) {
      const int64_t count = left / axis.stride * sign;
      left %= axis.stride;
      result.strides[i] += count * axis.step;
      (sign < 0 ? axis.lo : axis.hi) += count * (inner.shape[i] - 1);
    }
    if (left != 0) return std::nullopt;
  }
  for (const Coordinate& axis : axes) {
    if (axis.lo < 0 || axis.hi >= axis.size) return std::nullopt;
    assume_at_most(0, axis.lo);
    assume_at_most(axis.hi + 1, axis.size);
  }
  return result;
}

// Axes of the view that lie in one line are one run, which any sizes of its length may divide.
std::optional<View> reshape_view(const View& view, Ints shape) {
  View result{view.dtype, Sizes(shape), Sizes(shape.size()), view.offset};
  if (view.numel() == 0) {
    result.strides = contiguous_strides(shape);
    return result;
  }
  size_t to = shape.size();
  for (size_t from = view.rank(); from > 0;) {
    const int64_t stride = view.strides[from - 1];
    int64_t run = view.shape[--from];
    while (from > 0 && (view.shape[from - 1] == 1 || view.strides[from - 1] == stride * run)) {
      run *= view.shape[--from];
    }
    int64_t filled = 1;
    while (to > 0 && (filled < run || shape[to - 1] == 1)) {
      result.strides[to - 1] = stride * filled;
      filled *= shape[--to];
    }
    if (filled != run) return std::nullopt;
  }
  while (to > 0) result.strides[--to] = 1;  // ones before all axes of a view without any
  return result;
}

}  // namespace weft
