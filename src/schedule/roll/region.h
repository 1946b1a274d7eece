// Views of memory as plain numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ir/node.h"

namespace weft {

// Elements of a memory in row-major order of the axes: element (i, j, ...) lies at
// offset + i*stride of axis 0 + j*stride of axis 1 + ...
class Region {
 public:
  struct Axis {
    int64_t size = 1, stride = 0;
    bool operator==(const Axis&) const = default;
  };
  static constexpr size_t kMostAxes = 8;

  // All of a memory of this shape, as it lies; empty for symbolic sizes and too many axes.
  static std::optional<Region> whole(UOp memory);

  std::span<const Axis> axes() const { return {axes_.data(), rank_}; }
  int64_t offset() const { return offset_; }
  int64_t numel() const;
  // Offset, sizes and strides of axes that have one element do not count.
  bool operator==(const Region& other) const;
  // No element twice. False where strides alone do not show it.
  bool is_injective() const;

  // The same elements with neighbouring axes joined where they lie in one row.
  Region joined() const;

  // What the movement op `n` makes of this; false, and unchanged, where that is not a region.
  bool apply(UOp n);
  // The same elements in the same order under another shape of as many elements.
  bool reshape(std::span<const int64_t> sizes);
  // The same axes from another element on.
  Region moved_to(int64_t offset) const;

  // Calls f(first, count, stride) for each innermost row, in order.
  template <class F>
  void for_rows(F&& f) const {
    if (numel() == 0) return;
    std::array<int64_t, kMostAxes> at{};
    const size_t outer = rank_ == 0 ? 0 : rank_ - 1;
    const Axis inner = rank_ == 0 ? Axis{} : axes_[outer];
    int64_t first = offset_;
    while (true) {
      f(first, inner.size, inner.stride);
      size_t axis = outer;
      while (axis > 0 && ++at[axis - 1] == axes_[axis - 1].size) {
        first -= axes_[axis - 1].stride * (axes_[axis - 1].size - 1);
        at[axis - 1] = 0;
        axis--;
      }
      if (axis == 0) return;
      first += axes_[axis - 1].stride;
    }
  }

 private:
  bool add(Axis axis);
  bool apply_view(std::span<const UOp> args);

  std::array<Axis, kMostAxes> axes_{};
  size_t rank_ = 0;
  int64_t offset_ = 0;
};

}  // namespace weft
