// Pooling to a given size: window o of an axis is from floor(o * from / to) to
// ceil((o + 1) * from / to).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include <ATen/native/Resize.h>
#include <ATen/ops/adaptive_max_pool2d_backward_meta.h>
#include <ATen/ops/adaptive_max_pool2d_meta.h>
#include <ATen/ops/adaptive_max_pool3d_backward_meta.h>
#include <ATen/ops/adaptive_max_pool3d_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "formulas.h"
#include "ir/op.h"
#include "native.h"
#include "one_type.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/calls.h"
#include "tensor/positions.h"
#include "values_and_places.h"
#include "weft/dtype.h"
#include "weft/small_vector.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using at::IntArrayRef;

int64_t begin_of(int64_t o, int64_t from, int64_t to) { return o * from / to; }
int64_t end_of(int64_t o, int64_t from, int64_t to) { return ((o + 1) * from + to - 1) / to; }

// ---- means

// Axis `at` to so many: the mean of equal parts, or a product with shares of each window.
weft::Tensor mean_along(const weft::Tensor& x, size_t at, int64_t to) {
  const int64_t from = x.shape()[at];
  if (from == to) return x;
  const auto axis = int64_t(at);
  if (from % to == 0) {
    return x.unflatten(axis, {to, from / to}).mean(std::vector<int64_t>{axis + 1});
  }
  const weft::Tensor o = positions(weft_device(), to).unsqueeze(1);
  const weft::Tensor first = o.mul(from).div(to, Rounding::kDown);
  const weft::Tensor past = o.add(int64_t(1)).mul(from).add(to - 1).div(to, Rounding::kDown);
  const weft::Tensor i = positions(weft_device(), from);
  const weft::Tensor is_in = i.ge(first).bitwise_and(i.lt(past));
  const weft::Tensor shares =
      weft::Tensor::where(is_in, past.sub(first).cast(x.dtype()).reciprocal(), 0.0);
  const weft::Tensor moved = x.movedim({axis}, {-1});
  return moved.matmul(shares.transpose(0, 1)).movedim({-1}, {axis});
}

// The last axes to these sizes.
template <size_t count>
struct Means {
  std::array<int64_t, count> size{};

  Means() = default;
  explicit Means(IntArrayRef sizes) { std::copy_n(sizes.begin(), count, size.begin()); }
  auto fields() { return std::tie(size); }
  weft::Tensor operator()(const weft::Tensor& x) const {
    weft::Tensor y = x;
    for (size_t i = 0; i < count; i++) y = mean_along(y, size_t(x.ndim()) - count + i, size[i]);
    return y;
  }
};
template <size_t count>
constexpr auto kMeans = row(
    "adaptive_avg_pool", [](const Means<count>& means, const weft::Tensor& x) { return means(x); });
template <size_t count>
constexpr auto kMeansBackward =
    row("adaptive_avg_pool_backward",
        [](Ints shape, const Means<count>& means, const weft::Tensor& by) {
          return pulled_back(ints(Sizes(shape)), by, means);
        });

std::vector<int64_t> sizes_of(const at::Tensor& self, IntArrayRef size, const char* what) {
  const auto rank = int64_t(size.size());
  TORCH_CHECK(self.dim() == rank + 1 || self.dim() == rank + 2, what, ": Expected ", rank + 1,
              "D or ", rank + 2, "D tensor, but got ", self.sizes());
  for (int64_t i = 1; i < self.dim(); i++) {
    TORCH_CHECK(i < self.dim() - rank || self.size(i) > 0, what, ": Expected input to have ",
                "non-zero size for non-batch dimensions, but input has sizes ", self.sizes(),
                " with dimension ", i, " being empty");
  }
  std::vector<int64_t> sizes = list_of(self.sizes());
  std::copy(size.begin(), size.end(), sizes.end() - rank);
  return sizes;
}

template <size_t count>
weft::Tensor means_of(const at::Tensor& self, IntArrayRef size, const at::Tensor& result) {
  const weft::Tensor x = wide_operand(self);
  return call<kMeans<count>>({x.dtype(), ints(result.sizes())}, Means<count>(size), x);
}
template <size_t count>
weft::Tensor means_pulled_back(const at::Tensor& gradient, IntArrayRef size,
                               const at::Tensor& self) {
  const weft::Tensor g = wide_operand(gradient);
  return call<kMeansBackward<count>>({g.dtype(), ints(self.sizes())}, Means<count>(size), g);
}

template <size_t count>
at::Tensor& avg_out(const at::Tensor& self, IntArrayRef size, at::Tensor& out) {
  TORCH_CHECK(size.size() == count, "adaptive_avg_pool: output_size must be ", count);
  const auto sizes = sizes_of(self, size, "adaptive_avg_pool()");
  at::native::resize_output(out, sizes);
  if (out.numel() != 0) put(out, means_of<count>(self, size, out));
  return out;
}
template <size_t count>
at::Tensor avg(const at::Tensor& self, IntArrayRef size) {
  TORCH_CHECK(size.size() == count, "adaptive_avg_pool: output_size must be ", count);
  at::Tensor result = empty(sizes_of(self, size, "adaptive_avg_pool()"), self.scalar_type());
  const auto format = self.suggest_memory_format();
  if (format != c10::MemoryFormat::Contiguous && result.dim() == int64_t(count) + 2) {
    result.unsafeGetTensorImpl()->empty_tensor_restride(format);
  }
  if (result.numel() != 0) put(result, means_of<count>(self, size, result));
  return result;
}
template <size_t count>
at::Tensor avg_backward(const at::Tensor& gradient, const at::Tensor& self) {
  TORCH_CHECK(gradient.dim() == self.dim() && self.dim() > int64_t(count),
              "adaptive_avg_pool_backward: a gradient of shape ", gradient.sizes(),
              " does not fit an input of ", self.sizes());
  const size_t before = size_t(self.dim()) - count;
  TORCH_CHECK(gradient.sizes().slice(0, before) == self.sizes().slice(0, before),
              "adaptive_avg_pool_backward: a gradient of shape ", gradient.sizes(),
              " does not fit an input of ", self.sizes());
  check_one_type(self, gradient);
  at::Tensor result = empty(self.sizes(), self.scalar_type());
  const auto format = self.suggest_memory_format();
  if (format != c10::MemoryFormat::Contiguous && result.dim() == int64_t(count) + 2) {
    result.unsafeGetTensorImpl()->empty_tensor_restride(format);
  }
  if (result.numel() == 0) return result;
  const IntArrayRef size = gradient.sizes().slice(size_t(gradient.dim()) - count);
  put(result, gradient.numel() == 0 ? number(0, self.scalar_type())
                                    : means_pulled_back<count>(gradient, size, self));
  return result;
}
at::Tensor& avg3d_backward_out(const at::Tensor& gradient, const at::Tensor& self,
                               at::Tensor& out) {
  const at::Tensor by = avg_backward<3>(gradient, self);
  at::native::resize_output(out, by.sizes());
  if (out.numel() != 0) put(out, handle(by));
  return out;
}

// ---- the largest

// The windows of an axis as an axis behind all others.
weft::Tensor windows_along(const weft::Tensor& x, int64_t axis, int64_t to) {
  const int64_t from = x.shape()[size_t(axis)];
  if (from % to == 0) return x.unflatten(axis, {to, from / to}).movedim({axis + 1}, {-1});
  int64_t longest = 0;
  for (int64_t o = 0; o < to; o++) {
    longest = std::max(longest, end_of(o, from, to) - begin_of(o, from, to));
  }
  const weft::Tensor o = positions(weft_device(), to).cast(dtypes::int64).unsqueeze(1);
  const weft::Tensor first = o.mul(from).div(to, Rounding::kDown);
  const weft::Tensor past = o.add(int64_t(1)).mul(from).add(to - 1).div(to, Rounding::kDown);
  // Shorter windows see their last element again.
  const weft::Tensor seen =
      first.add(positions(weft_device(), longest)).minimum(past.sub(int64_t(1))).minimum(from - 1);
  return x.index_select(axis, seen.flatten())
      .unflatten(axis, {to, longest})
      .movedim({axis + 1}, {-1});
}

// The largest of windows of the last axes, and its place among them.
template <size_t count>
struct Largest {
  std::array<int64_t, count> size{};

  Largest() = default;
  explicit Largest(IntArrayRef sizes) { std::copy_n(sizes.begin(), count, size.begin()); }
  auto fields() { return std::tie(size); }
  weft::Tensor windows(const weft::Tensor& x) const {
    weft::Tensor y = x;
    for (size_t i = 0; i < count; i++) {
      y = windows_along(y, x.ndim() - int64_t(count - i), size[i]);
    }
    return y;
  }
  static std::vector<int64_t> last_axes() { return axes_from(-int64_t(count), 0); }
  weft::Tensor value(const weft::Tensor& x) const { return windows(x).max(last_axes()); }
  weft::Tensor place(const weft::Tensor& x) const {
    Sizes plane(x.shape().last(count));
    int64_t places = 1;
    for (const int64_t n : plane) places *= n;
    const weft::Tensor w = windows(x);
    weft::Tensor is_largest = w.eq(w.max(last_axes(), true));
    if (x.dtype().is_float()) is_largest = is_largest.bitwise_or(w.isnan());
    const weft::Tensor at = windows(positions(weft_device(), places).reshape(plane));
    return weft::Tensor::where(is_largest, at, places).min(last_axes());
  }
};

template <size_t count>
constexpr auto kLargest =
    row("adaptive_max_pool",
        [](const Largest<count>& largest, const weft::Tensor& x) { return largest.value(x); });
template <size_t count>
constexpr auto kPlaceOfLargest =
    row("place_of_adaptive_max_pool",
        [](const Largest<count>& largest, const weft::Tensor& x) { return largest.place(x); });

template <size_t count>
Two max(const Shaped& s, const at::Tensor& self, IntArrayRef size) {
  const weft::Tensor x = operand(self);
  const Ints shape = ints(s.out().sizes());
  const Largest<count> largest(size);
  return {call<kLargest<count>>({x.dtype(), shape}, largest, x),
          call<kPlaceOfLargest<count>>({dtypes::int64, shape}, largest, x)};
}

template <size_t count>
weft::Tensor max_backward(const Shaped&, const at::Tensor& gradient, const at::Tensor& self,
                          const at::Tensor& indices) {
  const int64_t first = self.dim() - int64_t(count);
  const weft::Tensor g = wide_operand(gradient).flatten(first);
  const weft::Tensor index = operand(indices).flatten(first);
  const weft::Tensor zeros =
      weft::Tensor::zeros(ints(self.sizes()), g.dtype(), g.device()).flatten(first);
  return zeros.scatter(-1, index, g, Op::ADD).reshape(ints(self.sizes()));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::_adaptive_avg_pool2d, avg<2>>(m);
  native<at::_ops::adaptive_avg_pool2d_out, avg_out<2>>(m);
  native<at::_ops::_adaptive_avg_pool2d_backward, avg_backward<2>>(m);
  native<at::_ops::_adaptive_avg_pool3d, avg<3>>(m);
  native<at::_ops::adaptive_avg_pool3d_out, avg_out<3>>(m);
  native<at::_ops::_adaptive_avg_pool3d_backward, avg_backward<3>>(m);
  native<at::_ops::adaptive_avg_pool3d_backward_grad_input, avg3d_backward_out>(m);
  structured<at::meta::structured_adaptive_max_pool2d, max<2>, at::_ops::adaptive_max_pool2d,
             at::_ops::adaptive_max_pool2d_out>(m);
  structured<at::meta::structured_adaptive_max_pool2d_backward, max_backward<2>,
             at::_ops::adaptive_max_pool2d_backward,
             at::_ops::adaptive_max_pool2d_backward_grad_input>(m);
  structured<at::meta::structured_adaptive_max_pool3d, max<3>, at::_ops::adaptive_max_pool3d,
             at::_ops::adaptive_max_pool3d_out>(m);
  structured<at::meta::structured_adaptive_max_pool3d_backward, max_backward<3>,
             at::_ops::adaptive_max_pool3d_backward,
             at::_ops::adaptive_max_pool3d_backward_grad_input>(m);
}

}  // namespace
}  // namespace weft::pytorch
