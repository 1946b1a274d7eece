// Convolution: windows times weights, summed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/device.h"
#include "tensor/convolution.h"
#include "tensor/einsum.h"
#include "tensor/operand.h"
#include "tensor/positions.h"
#include "tensor/stored.h"
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

// An axis with a stride: places stride * q + dilation * r, for the `count` first r, meet every
// so-manieth element of the kernel each, `taps` in all. So they are further channels of a
// convolution without a stride, whose taps are `step` apart.
struct Residues {
  int64_t count = 1, taps = 1, step = 1, stride = 1, dilation = 1;
};

// None where an r would belong to a later q.
std::optional<Residues> residues_of(int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t common = std::gcd(stride, dilation), all = stride / common;
  if (dilation * (all - 1) >= stride) return {};
  return Residues{.count = std::min(all, kernel),
                  .taps = (kernel + all - 1) / all,
                  .step = dilation / common,
                  .stride = stride,
                  .dilation = dilation};
}

// So much of an axis from `begin` on, zeros where it has none.
Tensor cut_out(const Tensor& x, size_t axis, int64_t begin, int64_t size) {
  const int64_t has = x.shape()[axis], end = begin + size;
  std::vector<std::pair<int64_t, int64_t>> around(x.view().rank()), kept;
  for (const int64_t n : x.shape()) kept.emplace_back(0, n);
  kept[axis] = {std::clamp<int64_t>(begin, 0, has), std::clamp<int64_t>(end, 0, has)};
  kept[axis].second = std::max(kept[axis].first, kept[axis].second);
  around[axis].first = std::min(std::max<int64_t>(-begin, 0), size);
  around[axis].second = size - around[axis].first - (kept[axis].second - kept[axis].first);
  return x.shrink(kept).pad(around, kNothing);
}

constexpr double kReuse = 32;      // products of each element: its copy is worth it
constexpr int64_t kManyRows = 24;  // outputs for which what is read is packed anyhow
constexpr int64_t kFewPlaces = 16;
constexpr double kManyProducts = 1 << 20;  // in all: fewer are not worth a further kernel

// Products of each element of x.
double reuse_of(const Tensor& weight, int64_t groups, const WindowAxes& axes) {
  double products = double(weight.shape()[0]) / double(groups);
  for (const WindowAxis& axis : axes) products *= double(axis.kernel) / double(axis.stride);
  return products;
}

// x with its padding, in memory in its order.
Tensor padded(const Tensor& x, WindowAxes& axes) {
  std::vector<std::pair<int64_t, int64_t>> around(2);
  for (WindowAxis& axis : axes) {
    around.emplace_back(axis.before, axis.after);
    axis.size += axis.before + axis.after;
    axis.before = axis.after = 0;
  }
  return x.pad(around, kNothing);
}

// The last axis without its stride: x of (n, channels * residues, ..., q) and weight.
std::pair<Tensor, Tensor> without_last_stride(const Tensor& x, const Tensor& weight,
                                              WindowAxes& axes) {
  WindowAxis& axis = axes.back();
  const size_t last = x.view().rank() - 1;
  const Residues r = *residues_of(axis.kernel, axis.stride, axis.dilation);
  const auto as_channels = [&](const Tensor& t, int64_t places, int64_t residues) {
    const Tensor split =
        cut_out(t, last, 0, places * residues).unflatten(int64_t(last), {places, residues});
    return cut_out(split.movedim({int64_t(last) + 1}, {2}), 2, 0, r.count).flatten(1, 2);
  };
  const int64_t places = axis.outputs + r.taps - 1;
  const std::pair result(as_channels(x, places, axis.stride),
                         as_channels(weight, r.taps, axis.stride));
  axis = {.size = places, .kernel = r.taps, .outputs = axis.outputs};
  return result;
}

}  // namespace

// Products of shape (n, groups, outputs of a group, inputs of a group, kernel..., ...), summed over
// inputs and kernel: places are last, as they are in the gradient by the windows.
Tensor convolution(const Tensor& given, LastAxis order, const Tensor& given_weight,
                   const std::optional<Tensor>& bias, const ConvOptions& options) {
  Tensor x = given, weight = given_weight;
  check_ranks("conv2d", x, weight);
  const int64_t groups = options.groups, outputs = weight.shape()[0];
  check_groups("conv2d", x, weight, groups, weight.shape()[1] * groups, outputs);
  const size_t count = x.view().rank() - 2;
  const auto stride = per_axis("conv2d", "stride", options.stride, count);
  const auto dilation = per_axis("conv2d", "dilation", options.dilation, count);
  const auto padding = per_side("conv2d", options.padding, count);
  WindowAxes axes;
  for (size_t i = 0; i < count; i++) {
    axes.push_back({.size = x.shape()[2 + i],
                    .kernel = weight.shape()[2 + i],
                    .stride = stride[i],
                    .dilation = dilation[i],
                    .before = padding[i].first,
                    .after = padding[i].second});
  }
  count_windows("conv2d", axes, false);
  const bool is_padded =
      std::ranges::any_of(axes, [](const WindowAxis& a) { return a.before != 0 || a.after != 0; });
  // Reads that are in order, and that no padding gates: what is copied is small beside its
  // products.
  const double reuse = reuse_of(weight, groups, axes);
  if (device_of(x).limits().sequences && reuse >= kReuse &&
      reuse * double(x.numel()) >= kManyProducts) {
    const WindowAxis& last = axes.back();
    const bool is_spread = last.stride > 1 && last.dilation == 1 && reuse >= 2 * kReuse &&
                           last.outputs >= kFewPlaces && outputs / groups < kManyRows;
    if (is_padded) x = padded(x, axes);
    if (is_spread) {
      std::tie(x, weight) = without_last_stride(x, weight, axes);
      weight = stored(weight);
    }
    if (is_padded || is_spread || order == LastAxis::kStrided) x = stored(x);
  }
  const int64_t inputs = weight.shape()[1];
  // (n, inputs, places..., kernel...) to (n, groups, 1, inputs of a group, kernel..., places...)
  x = windows_of(x, axes, kNothing).unflatten(1, {groups, inputs}).unsqueeze(2);
  std::vector<int64_t> places, last;
  for (int64_t i = 0; i < int64_t(count); i++) {
    places.push_back(4 + i);
    last.push_back(i - int64_t(count));
  }
  x = x.movedim(places, last);
  Sizes split{groups, outputs / groups}, result{x.shape()[0], outputs};
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

Tensor Tensor::conv2d(const Tensor& weight, const std::optional<Tensor>& bias,
                      const ConvOptions& options) const {
  const size_t rank = view_.rank();
  const bool is_strided = rank > 0 && view_.shape[rank - 1] > 1 && view_.strides[rank - 1] != 1;
  return convolution(*this, is_strided ? LastAxis::kStrided : LastAxis::kInOrder, weight, bias,
                     options);
}

namespace {

// (groups * inputs, outputs, kernel...) as the weight of a convolution of (groups * outputs * all
// residues, inputs, taps...), reversed.
Tensor turned(Tensor weight, int64_t groups, std::span<const Residues> axes) {
  const int64_t count = int64_t(axes.size()), inputs = weight.shape()[0] / groups;
  std::vector<int64_t> order{0, 2}, reversed;  // of (groups, inputs, outputs, taps, residues...)
  for (int64_t i = 0; i < count; i++) {
    const Residues& axis = axes[size_t(i)];
    const size_t at = size_t(2 + 2 * i);
    weight = cut_out(weight, at, 0, axis.taps * axis.count)
                 .unflatten(int64_t(at), {axis.taps, axis.count});
    order.push_back(4 + 2 * i);
  }
  order.push_back(1);
  for (int64_t i = 0; i < count; i++) order.push_back(3 + 2 * i), reversed.push_back(2 + i);
  return weight.unflatten(0, {groups, inputs}).permute(order).flatten(0, 1 + count).flip(reversed);
}

// (n, channels, residues..., q...) to (n, channels, stride * q + dilation * r...).
Tensor interleaved(Tensor y, std::span<const Residues> axes) {
  const int64_t count = int64_t(axes.size());
  std::vector<int64_t> order{0, 1};
  for (int64_t i = 0; i < count; i++) order.push_back(2 + count + i), order.push_back(2 + i);
  y = y.permute(order);
  for (int64_t i = 0; i < count; i++) {
    const Residues& axis = axes[size_t(i)];
    const size_t at = size_t(2 + i);  // of q, and of r behind it: those before are done
    if (axis.dilation > 1 && axis.count > 1) {
      y = cut_out(y.unsqueeze(int64_t(at) + 2), at + 2, 0, axis.dilation)
              .flatten(int64_t(at) + 1, int64_t(at) + 2);
    }
    y = cut_out(y, at + 1, 0, axis.stride).flatten(int64_t(at), int64_t(at) + 1);
  }
  return y;
}

// `stride` - 1 zeros between the elements of an axis.
Tensor spread(const Tensor& x, size_t axis, int64_t stride) {
  if (stride == 1 || x.shape()[axis] == 0) return x;
  const Tensor wide = cut_out(x.unsqueeze(int64_t(axis) + 1), axis + 1, 0, stride);
  const Tensor flat = wide.flatten(int64_t(axis), int64_t(axis) + 1);
  return cut_out(flat, axis, 0, flat.shape()[axis] - (stride - 1));
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
  std::vector<Residues> axes;
  std::vector<int64_t> begins, sizes, steps, around(2 * count);
  bool is_strided = false;
  const bool is_large = double(x.numel()) * double(weight.numel()) >=
                        kManyProducts * double(std::max<int64_t>(1, weight.shape()[0]));
  for (size_t i = 0; i < count; i++) {
    const int64_t kernel = weight.shape()[2 + i], places = x.shape()[2 + i];
    if (stride[i] <= 0 || dilation[i] <= 0 || kernel <= 0) {
      throw ShapeError(fmt::format("[{}] strides and dilations are at least 1", what));
    }
    if (more[i] < 0 || more[i] >= std::max(stride[i], dilation[i])) {
      throw ShapeError(
          fmt::format("[{}] output_padding {}; it is less than stride or dilation", what, more[i]));
    }
    std::optional<Residues> axis;
    if (stride[i] > 1 && places > 0 && is_large) axis = residues_of(kernel, stride[i], dilation[i]);
    is_strided = is_strided || axis;
    if (!axis) {
      x = spread(x, 2 + i, stride[i]);
      axis = Residues{.taps = kernel, .step = dilation[i]};
    }
    const int64_t all = (kernel - 1) * dilation[i] + (places - 1) * stride[i] + 1;
    const int64_t reach = (axis->taps - 1) * axis->step;
    begins.push_back(padding[i].first);
    sizes.push_back(all - padding[i].first - padding[i].second + more[i]);
    steps.push_back(axis->step);
    const size_t at = 2 * (count - 1 - i);  // from the last axis on
    const bool is_whole = axis->stride > 1;
    around[at] = reach - (is_whole ? 0 : padding[i].first);
    around[at + 1] = reach - (is_whole ? 0 : padding[i].second - more[i]);
    axes.push_back(*axis);
  }
  const ConvOptions dense{.groups = options.groups, .dilation = steps, .padding = around};
  Tensor w = turned(weight, options.groups, axes);
  if (!is_strided) return x.conv2d(w, bias, dense);
  w = stored(w);
  Sizes channels{weight.shape()[1] * options.groups};
  for (const Residues& axis : axes) channels.push_back(axis.count);
  // In memory as it is computed: what follows only moves it.
  Tensor y = interleaved(stored(x.conv2d(w, {}, dense)).unflatten(1, channels), axes);
  for (size_t i = 0; i < count; i++) {
    if (axes[i].stride > 1) y = cut_out(y, 2 + i, begins[i], sizes[i]);
  }
  return with_bias(what, y, bias);
}

}  // namespace weft
