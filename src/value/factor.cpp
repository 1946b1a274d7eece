// Strides to movement ops.
#include "value/factor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ir/op.h"
#include "value/view.h"
#include "weft/view.h"

namespace weft {
namespace {

// Movement ops as they are found; `shape` is that of what the last of them gives.
struct Steps {
  std::vector<Movement> list;
  Sizes shape;

  void add(Op op, Sizes result, Sizes numbers = {}) {
    shape = result;
    list.push_back({op, std::move(result), std::move(numbers)});
  }
  void reshape(const Sizes& to) {
    if (shape != to) add(Op::RESHAPE, to);
  }
  void expand(const Sizes& to) {
    if (shape != to) add(Op::EXPAND, to);
  }
  void flip(const Sizes& axes) {
    if (!axes.empty()) add(Op::FLIP, shape, axes);
  }
  // `order` may name fewer axes than there are: the others have size 1 and go.
  void permute(const Sizes& order) {
    Sizes ascending = order;
    std::sort(ascending.begin(), ascending.end());
    if (ascending != order) {
      Sizes kept, ranks, sizes;
      for (const int64_t axis : ascending) kept.push_back(shape[size_t(axis)]);
      for (const int64_t axis : order) {
        const auto* at = std::find(ascending.begin(), ascending.end(), axis);
        ranks.push_back(at - ascending.begin());
        sizes.push_back(shape[size_t(axis)]);
      }
      reshape(kept);
      add(Op::PERMUTE, sizes, ranks);
    }
  }
  void shrink(const Sizes& begins, const Sizes& sizes) {
    if (shape == sizes) return;
    Sizes numbers = begins;
    for (size_t i = 0; i < sizes.size(); i++) numbers.push_back(begins[i] + sizes[i]);
    add(Op::SHRINK, sizes, std::move(numbers));
  }
};

// The view as a box of a value of the shape `grid`; adds nothing when it is none.
bool add_box(const View& view, const Sizes& grid, Steps& steps) {
  const Sizes strides = contiguous_strides(grid);
  Sizes begins(grid.size()), sizes(grid.size(), 1), flipped, order;
  int64_t at = hull_of(view).lo;
  for (size_t i = 0; i < grid.size(); i++) {
    begins[i] = at / strides[i];
    at %= strides[i];
  }
  for (size_t i = 0; i < view.rank(); i++) {
    if (view.shape[i] == 1 || view.strides[i] == 0) continue;
    size_t axis = 0;
    while (axis < grid.size() &&
           (strides[axis] != std::abs(view.strides[i]) || grid[axis] == 1 || sizes[axis] != 1)) {
      axis++;
    }
    if (axis == grid.size() || begins[axis] + view.shape[i] > grid[axis]) return false;
    sizes[axis] = view.shape[i];
    order.push_back(int64_t(axis));
    if (view.strides[i] < 0) flipped.push_back(int64_t(axis));
  }
  std::sort(flipped.begin(), flipped.end());
  steps.reshape(grid);
  steps.shrink(begins, sizes);
  steps.flip(flipped);
  steps.permute(order);
  return true;
}

// (n/t1, t1/t2, ..., tk) for the strides of a view.
std::optional<Sizes> grid_of(const View& view, int64_t count) {
  Sizes strides;
  for (size_t i = 0; i < view.rank(); i++) {
    if (view.shape[i] > 1 && view.strides[i] != 0) strides.push_back(std::abs(view.strides[i]));
  }
  std::sort(strides.begin(), strides.end(), std::greater<>());
  Sizes grid;
  for (const int64_t stride : strides) {
    if (count % stride != 0 || count == stride) return std::nullopt;
    grid.push_back(count / stride);
    count = stride;
  }
  if (count > 1 || grid.empty()) grid.push_back(count);
  return grid;
}

bool is_all_of(const View& view, Ints shape) {
  return view.offset == 0 && is_contiguous(view) && equal(view.shape, shape);
}

int64_t count_of(Ints shape) {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

}  // namespace

std::vector<Movement> factor(const View& view, Ints shape) {
  if (is_all_of(view, shape)) return {};
  const int64_t count = count_of(shape);
  Steps steps{{}, Sizes(shape)};
  if (view.offset == 0 && view.numel() == count && is_contiguous(view)) {
    steps.reshape(view.shape);
    return std::move(steps.list);
  }
  bool is_box = add_box(view, steps.shape, steps);
  if (!is_box) {
    const std::optional<Sizes> grid = grid_of(view, count);
    is_box = grid && add_box(view, *grid, steps);
  }
  if (!is_box) {
    Sizes numbers = view.strides;
    numbers.push_back(view.offset);
    steps.add(Op::VIEW, view.shape, std::move(numbers));
    return std::move(steps.list);
  }
  Sizes ones = view.shape;
  for (size_t i = 0; i < view.rank(); i++) {
    if (view.strides[i] == 0) ones[i] = 1;
  }
  steps.reshape(ones);
  steps.expand(view.shape);
  return std::move(steps.list);
}

std::vector<Movement> factor_inverse(const View& view, Ints shape) {
  Steps steps{{}, view.shape};
  Sizes order, flipped;
  for (size_t i = 0; i < view.rank(); i++) {
    if (view.shape[i] == 1) continue;
    order.push_back(int64_t(i));
    if (view.strides[i] < 0) flipped.push_back(int64_t(i));
  }
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::abs(view.strides[size_t(a)]) > std::abs(view.strides[size_t(b)]);
  });
  steps.flip(flipped);
  steps.permute(order);
  steps.reshape(Sizes(shape));
  return std::move(steps.list);
}

}  // namespace weft
