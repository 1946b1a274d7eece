// Pooling: windows, reduced.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "runtime/device.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "tensor/positions.h"
#include "tensor/promote.h"
#include "tensor/windows.h"
#include "value/number_watch.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

WindowAxes axes_of(const char* what, const Tensor& x, const PoolOptions& options) {
  const size_t count = options.kernel_size.size();
  if (count == 0 || x.view().rank() < count) {
    throw ShapeError(
        fmt::format("[{}] windows along {} axes of {}", what, count, text_of_shape(x.shape())));
  }
  const auto stride = options.stride.empty() ? options.kernel_size
                                             : per_axis(what, "stride", options.stride, count);
  const auto dilation = per_axis(what, "dilation", options.dilation, count);
  const auto padding = per_side(what, options.padding, count);
  WindowAxes axes;
  for (size_t i = 0; i < count; i++) {
    axes.push_back({.size = x.shape()[x.view().rank() - count + i],
                    .kernel = options.kernel_size[i],
                    .stride = stride[i],
                    .dilation = dilation[i],
                    .before = padding[i].first,
                    .after = padding[i].second});
  }
  return axes;
}

// The last `count` axes.
std::vector<int64_t> last_axes(size_t count) {
  std::vector<int64_t> axes;
  for (size_t i = count; i > 0; i--) axes.push_back(-int64_t(i));
  return axes;
}

// How many elements of [first, end) each window of an axis sees.
Tensor counts(Device& device, const WindowAxis& axis, int64_t first, int64_t end) {
  const Tensor begin = positions(device, axis.outputs).mul(axis.stride).sub(axis.before);
  // t from ceil((first - begin) / dilation) to floor((end - 1 - begin) / dilation)
  const Tensor least = begin.sub(first).binary(Op::IDIV, axis.dilation).neg();
  const Tensor most = begin.neg().add(end - 1).binary(Op::IDIV, axis.dilation);
  const Tensor low = least.binary(Op::MAX, int64_t(0));
  return most.binary(Op::MIN, axis.kernel - 1).sub(low).add(int64_t(1));
}

}  // namespace

Tensor Tensor::avg_pool2d(const PoolOptions& options) const {
  WindowAxes axes = axes_of("avg_pool2d", *this, options);
  const WindowAxes asked = axes;
  count_windows("avg_pool2d", axes, options.ceil_mode);
  const Tensor x = dtype().is_float() ? *this : cast(default_float());
  const Tensor windows = windows_of(x, axes, kNothing);
  bool is_uniform = true;
  for (size_t i = 0; i < axes.size(); i++) {
    const bool is_padded = axes[i].before > 0 || axes[i].after > 0;
    is_uniform &= options.count_include_pad ? axes[i].after == asked[i].after : !is_padded;
  }
  if (is_uniform) return windows.mean(last_axes(axes.size()));
  // The windows of each axis have their own count of elements.
  Tensor sum = windows.sum(last_axes(axes.size()));
  Device& device = device_of(*this);
  Tensor divisor = full({}, int64_t(1), dtypes::int32, this->device());
  for (size_t i = 0; i < axes.size(); i++) {
    const int64_t first = options.count_include_pad ? -asked[i].before : 0;
    const int64_t end = axes[i].size + (options.count_include_pad ? asked[i].after : 0);
    divisor = divisor.unsqueeze(-1).mul(counts(device, axes[i], first, end));
  }
  return sum.div(divisor.cast(sum.dtype()));
}

namespace {

// What a maximum does not see.
Number least_of(DType dtype) {
  if (dtype.is_float()) return -std::numeric_limits<double>::infinity();
  if (dtype.is_bool()) return false;
  return int64_t(identity_bits(Op::MAX, dtype).value());
}

}  // namespace

Tensor Tensor::max_pool2d(const PoolOptions& options) const {
  WindowAxes axes = axes_of("max_pool2d", *this, options);
  count_windows("max_pool2d", axes, options.ceil_mode);
  return windows_of(*this, axes, least_of(dtype())).max(last_axes(axes.size()));
}

std::pair<Tensor, Tensor> Tensor::max_pool2d_with_indices(const PoolOptions& options) const {
  const Tensor largest = max_pool2d(options);
  WindowAxes axes = axes_of("max_pool2d", *this, options);
  count_windows("max_pool2d", axes, options.ceil_mode);
  // The first one of a window that is as large, or NaN as that is.
  Sizes plane;
  int64_t size = 1;
  for (const WindowAxis& axis : axes) {
    plane.push_back(axis.size);
    size *= axis.size;
  }
  Tensor kept = largest.detach();
  Sizes raised(kept.shape());
  for (size_t i = 0; i < axes.size(); i++) raised.push_back(1);
  kept = kept.reshape(raised);
  const Tensor seen = windows_of(detach(), axes, least_of(dtype()));
  const Tensor place = positions(device_of(*this), size).reshape(plane);
  const Tensor places = windows_of(place, axes, size);
  Tensor is_largest = seen.binary(Op::CMPEQ, kept);
  if (dtype().is_float()) is_largest = is_largest.binary(Op::OR, seen.binary(Op::CMPNE, seen));
  const Tensor index = where(is_largest, places, size).min(last_axes(axes.size()));
  return {largest, index};
}

Tensor Tensor::max_unpool2d(const Tensor& indices, const PoolOptions& options,
                            const std::optional<std::vector<int64_t>>& output_size) const {
  const char* const what = "max_unpool2d";
  check_same_device(what, *this, indices);
  const WindowAxes axes = axes_of(what, *this, options);
  if (!std::ranges::equal(shape(), indices.shape())) {
    throw ShapeError(fmt::format("[{}] indices of {} for {}", what, text_of_shape(indices.shape()),
                                 text_of_shape(shape())));
  }
  assume_exact(shape());
  const size_t first = view_.rank() - axes.size();
  Sizes result(shape());
  int64_t size = 1;
  for (size_t i = 0; i < axes.size(); i++) {
    const WindowAxis& axis = axes[i];
    result[first + i] = (axis.size - 1) * axis.stride - axis.before - axis.after + axis.extent();
    if (output_size) {
      if (output_size->size() < axes.size()) {
        throw ShapeError(fmt::format("[{}] an output size of {} axes for {}", what,
                                     output_size->size(), axes.size()));
      }
      result[first + i] = (*output_size)[output_size->size() - axes.size() + i];
    }
    size *= result[first + i];
  }
  checked_numel(what, result);
  const int64_t from = int64_t(first);
  Sizes flat(shape().subspan(0, first));
  flat.push_back(size);
  const Tensor planes = zeros(flat, dtype(), device());
  chosen_along(what, planes, first, indices.flatten(from), Negative::kOutOfRange)
      .write(what, read(flatten(from)));
  return planes.reshape(result);
}

}  // namespace weft
