// Pooling: windows along the last axes, reduced.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/native/Pool.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/avg_pool2d_backward_meta.h>
#include <ATen/ops/avg_pool2d_meta.h>
#include <ATen/ops/avg_pool3d_backward_meta.h>
#include <ATen/ops/avg_pool3d_meta.h>
#include <ATen/ops/max_pool2d_with_indices_backward_meta.h>
#include <ATen/ops/max_pool2d_with_indices_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/calls.h"
#include "tensor/windows.h"
#include "values_and_places.h"
#include "weft/dtype.h"
#include "weft/small_vector.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using at::IntArrayRef;

WindowAxes axes_of(IntArrayRef sizes, const PoolOptions& options) {
  const size_t count = options.kernel_size.size(), first = sizes.size() - count;
  WindowAxes axes;
  for (size_t i = 0; i < count; i++) {
    axes.push_back({.size = sizes[first + i],
                    .kernel = options.kernel_size[i],
                    .stride = options.stride[i],
                    .dilation = options.dilation[i],
                    .before = options.padding[i],
                    .after = options.padding[i]});
  }
  count_windows("pool", axes, options.ceil_mode);
  return axes;
}

// Options of windows along so many axes, as an attribute of a call. Lists have one number per axis,
// or one for all; no stride is that of the kernel.
class KeptOptions {
 public:
  KeptOptions() = default;
  KeptOptions(size_t count, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
              IntArrayRef dilation, bool ceil_mode)
      : count_(count), ceil_mode_(ceil_mode) {
    const auto set = [count](Numbers& to, IntArrayRef list) {
      for (size_t i = 0; i < count; i++) to[i] = list.size() == 1 ? list[0] : list.at(i);
    };
    set(kernel_, kernel);
    set(stride_, stride.empty() ? kernel : stride);
    set(padding_, padding);
    set(dilation_, dilation);
  }
  auto fields() { return std::tie(count_, ceil_mode_, kernel_, stride_, padding_, dilation_); }
  PoolOptions options() const {
    const auto list = [&](const Numbers& numbers) {
      return std::vector<int64_t>(numbers.begin(), numbers.begin() + int64_t(count_));
    };
    PoolOptions options;
    options.kernel_size = list(kernel_);
    options.stride = list(stride_);
    options.padding = list(padding_);
    options.dilation = list(dilation_);
    options.ceil_mode = ceil_mode_;
    return options;
  }

 private:
  using Numbers = std::array<int64_t, 3>;

  size_t count_ = 0;
  bool ceil_mode_ = false;
  Numbers kernel_{}, stride_{}, padding_{}, dilation_{};
};

// ---- the largest

constexpr auto kMaxPool = row("max_pool", [](const KeptOptions& kept, const weft::Tensor& x) {
  return x.max_pool2d_with_indices(kept.options()).first;
});
constexpr auto kPlaceOfMaxPool =
    row("place_of_max_pool", [](const KeptOptions& kept, const weft::Tensor& x) {
      return x.max_pool2d_with_indices(kept.options()).second;
    });

// Of this shape.
Two max_pool(const at::Tensor& self, const KeptOptions& kept, at::IntArrayRef sizes) {
  const weft::Tensor x = operand(self);
  return {call<kMaxPool>({x.dtype(), ints(sizes)}, kept, x),
          call<kPlaceOfMaxPool>({dtypes::int64, ints(sizes)}, kept, x)};
}

// Each window gives its gradient to the element whose place it kept.
weft::Tensor scattered(Ints self, const KeptOptions& kept, const weft::Tensor& gradient,
                       const weft::Tensor& indices) {
  const Sizes own(self);
  const WindowAxes axes = axes_of(ints(own), kept.options());
  Sizes plane, raised(gradient.shape());
  int64_t size = 1;
  for (const WindowAxis& axis : axes) {
    plane.push_back(axis.size);
    raised.push_back(1);
    size *= axis.size;
  }
  const weft::Tensor places =
      weft::Tensor::arange(int64_t(0), size, int64_t(1), dtypes::int32, weft_device().name())
          .reshape(plane);
  const weft::Tensor seen = windows_of(places, axes, int64_t(-1));
  const weft::Tensor index = indices.cast(dtypes::int32).reshape(raised);
  const weft::Tensor by_windows =
      weft::Tensor::where(seen.eq(index), gradient.reshape(raised), 0.0);
  return pulled_back(ints(own), by_windows,
                     [&](const weft::Tensor& x) { return windows_of(x, axes, int64_t(0)); });
}

constexpr auto kMaxPoolBackward = row<scattered>("max_pool_backward");

weft::Tensor max_pool_backward(const at::Tensor& gradient, const at::Tensor& self,
                               const KeptOptions& kept, const at::Tensor& indices) {
  const weft::Tensor g = wide_operand(gradient);
  return call<kMaxPoolBackward>({g.dtype(), ints(self.sizes())}, kept, g, operand(indices));
}

Two max_pool2d(const Shaped& s, const at::Tensor& self, IntArrayRef kernel, IntArrayRef stride,
               IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  return max_pool(self, KeptOptions(2, kernel, stride, padding, dilation, ceil_mode),
                  s.out().sizes());
}
weft::Tensor max_pool2d_backward(const Shaped&, const at::Tensor& gradient, const at::Tensor& self,
                                 IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                                 IntArrayRef dilation, bool ceil_mode, const at::Tensor& indices) {
  return max_pool_backward(gradient, self,
                           KeptOptions(2, kernel, stride, padding, dilation, ceil_mode), indices);
}

std::vector<int64_t> sizes_of_max_pool3d(const at::Tensor& self, IntArrayRef kernel,
                                         IntArrayRef stride, IntArrayRef padding,
                                         IntArrayRef dilation, bool ceil_mode) {
  const auto check = [](IntArrayRef list, const char* what, bool may_be_none) {
    TORCH_CHECK(list.size() == 1 || list.size() == 3 || (may_be_none && list.empty()),
                "max_pool3d: ", what, " must either be a single int, or a tuple of three ints");
  };
  check(kernel, "kernel_size", false);
  check(stride, "stride", true);
  check(padding, "padding", false);
  check(dilation, "dilation", false);
  const auto k = list_of(kernel, 3), s = stride.empty() ? k : list_of(stride, 3);
  const auto p = list_of(padding, 3), d = list_of(dilation, 3);
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5,
              "non-empty 4D or 5D (batch mode) tensor expected for input");
  std::vector<int64_t> sizes = list_of(self.sizes());
  const size_t first = sizes.size() - 3;
  std::array<int64_t, 3> out{};
  for (size_t i = 0; i < 3; i++) {
    out[i] = at::native::pooling_output_shape<int64_t>(sizes[first + i], k[i], p[i], s[i], d[i],
                                                       ceil_mode);
  }
  at::native::pool3d_shape_check(self, self.size(-4), int(k[0]), int(k[1]), int(k[2]), int(s[0]),
                                 int(s[1]), int(s[2]), int(p[0]), int(p[1]), int(p[2]), int(d[0]),
                                 int(d[1]), int(d[2]), self.size(-3), self.size(-2), self.size(-1),
                                 out[0], out[1], out[2], "max_pool3d_with_indices()");
  std::copy(out.begin(), out.end(), sizes.begin() + int64_t(first));
  return sizes;
}

void place(at::Tensor& to, IntArrayRef sizes, weft::Tensor value) {
  at::native::resize_output(to, sizes);
  if (to.numel() != 0) put(to, std::move(value));
}

std::tuple<at::Tensor, at::Tensor> max_pool3d(const at::Tensor& self, IntArrayRef kernel,
                                              IntArrayRef stride, IntArrayRef padding,
                                              IntArrayRef dilation, bool ceil_mode) {
  const auto sizes = sizes_of_max_pool3d(self, kernel, stride, padding, dilation, ceil_mode);
  at::Tensor out = empty(sizes, self.scalar_type()), indices = empty(sizes, at::kLong);
  const auto format = self.suggest_memory_format();
  if (format != c10::MemoryFormat::Contiguous && self.dim() == 5) {
    out.unsafeGetTensorImpl()->empty_tensor_restride(format);
    indices.unsafeGetTensorImpl()->empty_tensor_restride(format);
  }
  if (out.numel() == 0) return {out, indices};
  Two both = max_pool(self, KeptOptions(3, kernel, stride, padding, dilation, ceil_mode), sizes);
  put(out, std::move(both[0]));
  put(indices, std::move(both[1]));
  return {std::move(out), std::move(indices)};
}
std::tuple<at::Tensor&, at::Tensor&> max_pool3d_out(const at::Tensor& self, IntArrayRef kernel,
                                                    IntArrayRef stride, IntArrayRef padding,
                                                    IntArrayRef dilation, bool ceil_mode,
                                                    at::Tensor& out, at::Tensor& indices) {
  const auto sizes = sizes_of_max_pool3d(self, kernel, stride, padding, dilation, ceil_mode);
  at::native::resize_output(out, sizes);
  at::native::resize_output(indices, sizes);
  if (out.numel() == 0) return {out, indices};
  Two both = max_pool(self, KeptOptions(3, kernel, stride, padding, dilation, ceil_mode), sizes);
  put(out, std::move(both[0]));
  put(indices, std::move(both[1]));
  return {out, indices};
}
at::Tensor max_pool3d_backward(const at::Tensor& gradient, const at::Tensor& self,
                               IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                               IntArrayRef dilation, bool ceil_mode, const at::Tensor& indices) {
  const auto sizes = sizes_of_max_pool3d(self, kernel, stride, padding, dilation, ceil_mode);
  check_sizes("the gradient", gradient, sizes);
  check_sizes("indices", indices, sizes);
  at::Tensor result = empty(self.sizes(), self.scalar_type());
  if (result.numel() == 0) return result;
  put(result,
      max_pool_backward(gradient, self,
                        KeptOptions(3, kernel, stride, padding, dilation, ceil_mode), indices));
  return result;
}
at::Tensor& max_pool3d_backward_out(const at::Tensor& gradient, const at::Tensor& self,
                                    IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                                    IntArrayRef dilation, bool ceil_mode, const at::Tensor& indices,
                                    at::Tensor& out) {
  const at::Tensor by =
      max_pool3d_backward(gradient, self, kernel, stride, padding, dilation, ceil_mode, indices);
  place(out, by.sizes(), handle(by));
  return out;
}

// ---- means

// Of floats; integers are added and divided in float64.
weft::Tensor mean_of_windows(const weft::Tensor& x, const PoolOptions& options,
                             std::optional<int64_t> divisor) {
  if (!divisor) return x.avg_pool2d(options);
  const Sizes shape(x.shape());
  const WindowAxes axes = axes_of(ints(shape), options);
  const int64_t first = x.ndim();
  const auto windows = axes_from(first, first + int64_t(axes.size()));
  return windows_of(x, axes, 0.0).sum(windows).div(double(*divisor));
}

// How windows are averaged.
struct Mean {
  KeptOptions kept;
  bool count_include_pad;
  std::optional<int64_t> divisor;

  auto fields() { return std::tie(kept, count_include_pad, divisor); }
  weft::Tensor operator()(const weft::Tensor& x) const {
    PoolOptions options = kept.options();
    options.count_include_pad = count_include_pad;
    return mean_of_windows(x, options, divisor);
  }
};

constexpr auto kAvgPool =
    row("avg_pool", [](const Mean& mean, const weft::Tensor& x) { return mean(x); });
constexpr auto kAvgPoolBackward =
    row("avg_pool_backward", [](Ints shape, const Mean& mean, const weft::Tensor& by) {
      return pulled_back(ints(Sizes(shape)), by, mean);
    });

template <size_t count>
weft::Tensor avg_pool(const Shaped& s, const at::Tensor& self, IntArrayRef kernel,
                      IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                      bool count_include_pad, std::optional<int64_t> divisor) {
  const KeptOptions kept(count, kernel, stride, padding, 1, ceil_mode);
  const Mean mean{kept, count_include_pad, divisor};
  weft::Tensor x = wide_operand(self);
  if (!x.dtype().is_float()) x = x.cast(dtypes::float64);
  return call<kAvgPool>({x.dtype(), ints(s.out().sizes())}, mean, x);
}

template <size_t count>
weft::Tensor avg_pool_backward(const Shaped&, const at::Tensor& gradient, const at::Tensor& self,
                               IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                               bool ceil_mode, bool count_include_pad,
                               std::optional<int64_t> divisor) {
  const KeptOptions kept(count, kernel, stride, padding, 1, ceil_mode);
  const weft::Tensor g = wide_operand(gradient);
  return call<kAvgPoolBackward>({g.dtype(), ints(self.sizes())},
                                Mean{kept, count_include_pad, divisor}, g);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  structured<at::meta::structured_max_pool2d_with_indices, max_pool2d,
             at::_ops::max_pool2d_with_indices, at::_ops::max_pool2d_with_indices_out>(m);
  structured<at::meta::structured_max_pool2d_with_indices_backward, max_pool2d_backward,
             at::_ops::max_pool2d_with_indices_backward,
             at::_ops::max_pool2d_with_indices_backward_grad_input>(m);
  native<at::_ops::max_pool3d_with_indices, max_pool3d>(m);
  native<at::_ops::max_pool3d_with_indices_out, max_pool3d_out>(m);
  native<at::_ops::max_pool3d_with_indices_backward, max_pool3d_backward>(m);
  native<at::_ops::max_pool3d_with_indices_backward_grad_input, max_pool3d_backward_out>(m);
  structured<at::meta::structured_avg_pool2d, avg_pool<2>, at::_ops::avg_pool2d,
             at::_ops::avg_pool2d_out>(m);
  structured<at::meta::structured_avg_pool2d_backward, avg_pool_backward<2>,
             at::_ops::avg_pool2d_backward, at::_ops::avg_pool2d_backward_grad_input>(m);
  structured<at::meta::structured_avg_pool3d, avg_pool<3>, at::_ops::avg_pool3d,
             at::_ops::avg_pool3d_out>(m);
  structured<at::meta::structured_avg_pool3d_backward, avg_pool_backward<3>,
             at::_ops::avg_pool3d_backward, at::_ops::avg_pool3d_backward_grad_input>(m);
}

}  // namespace
}  // namespace weft::pytorch
