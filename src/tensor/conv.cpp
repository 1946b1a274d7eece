// Convolution: windows times weights, summed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "tensor/einsum.h"
#include "tensor/operand.h"
#include "tensor/positions.h"
#include "tensor/windows.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

void check_ranks(const char* what, const Tensor& x, const Tensor& weight) {
  if (weight.ndim() >= 3 && x.ndim() == weight.ndim()) return;
  throw ShapeError(fmt::format(
      "[{}] {} with a weight of {}: both have a batch or outputs, channels, and as many axes", what,
      text_of_shape(x.shape()), text_of_shape(weight.shape())));
}

void check_groups(const char* what, const Tensor& x, const Tensor& weight, int64_t groups,
                  int64_t inputs, int64_t outer) {
  if (groups > 0 && outer % groups == 0 && x.shape()[1] == inputs) return;
  throw ShapeError(fmt::format("[{}] {} with a weight of {} in {} groups: channels do not fit",
                               what, text_of_shape(x.shape()), text_of_shape(weight.shape()),
                               groups));
}

Tensor with_bias(const char* what, const Tensor& y, const std::optional<Tensor>& bias) {
  if (!bias) return y;
  if (bias->ndim() != 1 || bias->shape()[0] != y.shape()[1]) {
    throw ShapeError(fmt::format("[{}] a bias of {} for {} channels", what,
                                 text_of_shape(bias->shape()), y.shape()[1]));
  }
  Sizes along(y.view().rank() - 1, 1);
  along[0] = y.shape()[1];
  return y.add(bias->reshape(along));
}

}  // namespace

// Products of shape (n, groups, outputs of a group, inputs of a group, kernel..., ...), summed over
// inputs and kernel: places are last, as they are in the gradient by the windows.
Tensor Tensor::conv2d(const Tensor& weight, const std::optional<Tensor>& bias,
                      const ConvOptions& options) const {
  check_ranks("conv2d", *this, weight);
  const int64_t groups = options.groups, outputs = weight.shape()[0];
  const int64_t inputs = weight.shape()[1];
  check_groups("conv2d", *this, weight, groups, inputs * groups, outputs);
  const size_t count = view_.rank() - 2;
  const auto stride = per_axis("conv2d", "stride", options.stride, count);
  const auto dilation = per_axis("conv2d", "dilation", options.dilation, count);
  const auto padding = per_side("conv2d", options.padding, count);
  WindowAxes axes;
  for (size_t i = 0; i < count; i++) {
    axes.push_back({.size = view_.shape[2 + i],
                    .kernel = weight.shape()[2 + i],
                    .stride = stride[i],
                    .dilation = dilation[i],
                    .before = padding[i].first,
                    .after = padding[i].second});
  }
  count_windows("conv2d", axes, false);
  // (n, inputs, places..., kernel...) to (n, groups, 1, inputs of a group, kernel..., places...)
  Tensor x = windows_of(*this, axes, kNothing).unflatten(1, {groups, inputs}).unsqueeze(2);
  std::vector<int64_t> places, last;
  for (int64_t i = 0; i < int64_t(count); i++) {
    places.push_back(4 + i);
    last.push_back(i - int64_t(count));
  }
  x = x.movedim(places, last);
  Sizes split{groups, outputs / groups}, result{view_.shape[0], outputs};
  for (size_t i = 1; i < weight.view().rank(); i++) split.push_back(weight.shape()[i]);
  for (const WindowAxis& axis : axes) {
    split.push_back(1);
    result.push_back(axis.outputs);
  }
  std::vector<int64_t> over;
  for (int64_t i = 0; i <= int64_t(count); i++) over.push_back(3 + i);
  const Tensor y =
      sum_of_products("conv2d", x, weight.reshape(split), over, options.dtype).reshape(result);
  return with_bias("conv2d", y, bias);
}

namespace {

// `stride` - 1 zeros between the elements of an axis.
Tensor spread(const Tensor& x, size_t axis, int64_t stride) {
  if (stride == 1 || x.shape()[axis] == 0) return x;
  std::vector<std::pair<int64_t, int64_t>> around(x.view().rank() + 1);
  around[axis + 1] = {0, stride - 1};
  const Tensor wide = x.unsqueeze(int64_t(axis) + 1).pad(around, kNothing);
  const Tensor flat = wide.flatten(int64_t(axis), int64_t(axis) + 1);
  Sizes to(flat.view().rank(), -1);
  to[axis] = flat.shape()[axis] - (stride - 1);
  return flat.shrink_to(to);
}

// (groups * inputs, outputs, kernel...) as the weight of a convolution of (groups * outputs,
// inputs, kernel...), reversed.
Tensor turned(const Tensor& weight, int64_t groups) {
  std::vector<int64_t> axes;
  for (int64_t i = 3; i <= weight.ndim(); i++) axes.push_back(i);
  const int64_t inputs = weight.shape()[0] / groups;
  return weight.unflatten(0, {groups, inputs}).transpose(1, 2).flip(axes).flatten(0, 1);
}

}  // namespace

Tensor Tensor::conv_transpose2d(const Tensor& weight, const std::optional<Tensor>& bias,
                                const ConvOptions& options) const {
  const char* const what = "conv_transpose2d";
  check_ranks(what, *this, weight);
  check_groups(what, *this, weight, options.groups, weight.shape()[0], weight.shape()[0]);
  const size_t count = view_.rank() - 2;
  const auto stride = per_axis(what, "stride", options.stride, count);
  const auto dilation = per_axis(what, "dilation", options.dilation, count);
  const auto padding = per_side(what, options.padding, count);
  const auto more = per_axis(what, "output_padding", options.output_padding, count);
  Tensor x = *this;
  std::vector<int64_t> around(2 * count);
  for (size_t i = 0; i < count; i++) {
    if (stride[i] <= 0 || dilation[i] <= 0 || weight.shape()[2 + i] <= 0) {
      throw ShapeError(fmt::format("[{}] strides and dilations are at least 1", what));
    }
    if (more[i] < 0 || more[i] >= std::max(stride[i], dilation[i])) {
      throw ShapeError(
          fmt::format("[{}] output_padding {}; it is less than stride or dilation", what, more[i]));
    }
    x = spread(x, 2 + i, stride[i]);
    const int64_t reach = (weight.shape()[2 + i] - 1) * dilation[i];
    const size_t at = 2 * (count - 1 - i);  // from the last axis on
    around[at] = reach - padding[i].first;
    around[at + 1] = reach - padding[i].second + more[i];
  }
  return x.conv2d(turned(weight, options.groups), bias,
                  {.groups = options.groups, .dilation = dilation, .padding = around});
}

}  // namespace weft
