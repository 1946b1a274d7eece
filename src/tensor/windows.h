// Windows along the last axes of a tensor: what pooling and convolution look at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

// Windows along one axis: output o sees elements o * stride - before + t * dilation, t < kernel.
struct WindowAxis {
  int64_t size, kernel, stride = 1, dilation = 1, before = 0, after = 0;
  int64_t outputs = 0;

  auto fields() { return std::tie(size, kernel, stride, dilation, before, after, outputs); }
  int64_t extent() const { return dilation * (kernel - 1) + 1; }
};
using WindowAxes = std::vector<WindowAxis>;

// What an option says of every one of `count` axes: a list of one number, or of one per axis.
std::vector<int64_t> per_axis(const char* what, const char* option,
                              const std::vector<int64_t>& list, size_t count);
// Elements before and after every axis: padding as PoolOptions have it.
std::vector<std::pair<int64_t, int64_t>> per_side(const char* what,
                                                  const std::vector<int64_t>& padding,
                                                  size_t count);

// Works out `outputs`, and with ceil_mode makes `after` as large as they need. Throws ShapeError
// where there is none.
void count_windows(const char* what, WindowAxes& axes, bool ceil_mode);

// The windows of x, padded with `value`: outputs of each axis in the place of the axis, then one
// axis per kernel. A view of what is padded.
Tensor windows_of(const Tensor& x, const WindowAxes& axes, Number value);

}  // namespace weft
