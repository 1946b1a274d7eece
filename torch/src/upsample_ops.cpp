// Other sizes of the last axes: the nearest element, or a sum of few with weights of their
// distances, axis after axis. Places are computed as PyTorch does, in float32 but for float64.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

#include <ATen/ops/_upsample_nearest_exact1d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact1d_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_meta.h>
#include <ATen/ops/upsample_bicubic2d_backward_meta.h>
#include <ATen/ops/upsample_bicubic2d_meta.h>
#include <ATen/ops/upsample_bilinear2d_backward_meta.h>
#include <ATen/ops/upsample_bilinear2d_meta.h>
#include <ATen/ops/upsample_linear1d_backward_meta.h>
#include <ATen/ops/upsample_linear1d_meta.h>
#include <ATen/ops/upsample_nearest1d_backward_meta.h>
#include <ATen/ops/upsample_nearest1d_meta.h>
#include <ATen/ops/upsample_nearest2d_backward_meta.h>
#include <ATen/ops/upsample_nearest2d_meta.h>
#include <ATen/ops/upsample_nearest3d_backward_meta.h>
#include <ATen/ops/upsample_nearest3d_meta.h>
#include <ATen/ops/upsample_trilinear3d_backward_meta.h>
#include <ATen/ops/upsample_trilinear3d_meta.h>
#include <torch/library.h>

#include "convert.h"
#include "formulas.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/calls.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "tensor/positions.h"
#include "weft/dtype.h"
#include "weft/small_vector.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using at::IntArrayRef;
using Factor = std::optional<double>;

enum class Way : uint8_t { kNearest, kExact, kLinear, kCubic };

// One axis: so many elements become so many.
struct Axis {
  size_t at;
  int64_t from, to;
  Factor factor;
  bool align_corners = false;

  // Elements of the source for one of the result.
  double step() const {
    if (align_corners) return to > 1 ? double(from - 1) / double(to - 1) : 0.0;
    return factor && *factor > 0 ? 1.0 / *factor : double(from) / double(to);
  }
};

// Elements of an axis by an index that is surely in range.
weft::Tensor pick(const weft::Tensor& x, size_t axis, const weft::Tensor& index) {
  return Chosen{x, int64_t(axis), int64_t(axis) + 1, read(index)}.read();
}
weft::Tensor clamped(const weft::Tensor& index, int64_t size) {
  return index.maximum(int64_t(0)).minimum(size - 1);
}
weft::Tensor along(const weft::Tensor& x, size_t axis, const weft::Tensor& vector) {
  Sizes shape(size_t(x.ndim()) - axis, 1);
  shape[0] = vector.numel();
  return vector.reshape(shape);
}
DType computing(const weft::Tensor& x) {
  return x.dtype() == dtypes::float64 ? dtypes::float64 : dtypes::float32;
}
weft::Tensor places(int64_t count, DType dtype) {
  return positions(weft_device(), count).cast(dtype);
}

DType wide_dtype(DType dtype) { return dtype.bits() < 32 ? dtypes::float32 : dtype; }

// Every element k times, as the rounded arithmetic has it.
bool repeats(const Axis& a, double offset) {
  if (a.to % a.from != 0) return false;
  const auto step = float(a.step());
  for (int64_t i = 0; i < a.to; i++) {
    if (int64_t(std::floor((float(i) + float(offset)) * step)) != i / (a.to / a.from)) return false;
  }
  return true;
}

weft::Tensor nearest(const weft::Tensor& x, const Axis& a, double offset) {
  if (a.from == a.to && !a.factor) return x;
  if (repeats(a, offset)) return x.repeat_interleave(a.to / a.from, int64_t(a.at));
  const weft::Tensor scaled = (places(a.to, computing(x)) + offset) * a.step();
  return pick(x, a.at, clamped(scaled.floor().cast(dtypes::int32), a.from));
}

weft::Tensor source_places(const weft::Tensor& x, const Axis& a) {
  const weft::Tensor place = places(a.to, computing(x));
  return a.align_corners ? place * a.step() : (place + 0.5) * a.step() - 0.5;
}

weft::Tensor linear(const weft::Tensor& x, const Axis& a) {
  if (a.from == a.to && (!a.factor || a.align_corners)) return x;
  const weft::Tensor source = source_places(x, a).maximum(0.0);
  const weft::Tensor low = clamped(source.cast(dtypes::int32), a.from);
  const weft::Tensor high = clamped(low + int64_t(1), a.from);
  const weft::Tensor weight = along(x, a.at, (source - low.cast(source.dtype())).clamp(0.0, 1.0));
  return pick(x, a.at, low) * (1.0 - weight) + pick(x, a.at, high) * weight;
}

// Four elements around, by Keys' kernel with a = -0.75.
weft::Tensor cubic(const weft::Tensor& x, const Axis& axis) {
  constexpr double a = -0.75;
  const auto near = [&](const weft::Tensor& t) { return ((t * (a + 2) - (a + 3)) * t) * t + 1.0; };
  const auto far = [&](const weft::Tensor& t) { return ((t * a - 5 * a) * t + 8 * a) * t - 4 * a; };
  const weft::Tensor source = source_places(x, axis), floor = source.floor(), t = source - floor;
  const weft::Tensor first = floor.cast(dtypes::int32);
  const std::array weights{far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
  std::optional<weft::Tensor> sum;
  for (int64_t i = 0; i < 4; i++) {
    const weft::Tensor part = pick(x, axis.at, clamped(first + (i - 1), axis.from)) *
                              along(x, axis.at, weights[size_t(i)]);
    sum = sum ? *sum + part : part;
  }
  return *sum;
}

template <Way way, size_t count>
struct Resize {
  std::array<int64_t, count> to{};
  std::array<Factor, count> factors{};
  bool align_corners = false;

  Resize() = default;
  Resize(IntArrayRef size, const std::array<Factor, count>& given, bool aligned)
      : factors(given), align_corners(aligned) {
    std::copy_n(size.begin(), count, to.begin());
  }
  auto fields() { return std::tie(to, factors, align_corners); }

  weft::Tensor operator()(weft::Tensor x) const {
    const size_t first = size_t(x.ndim()) - count;
    for (size_t i = 0; i < count; i++) {
      const Axis axis{first + i, x.shape()[first + i], to[i], factors[i], align_corners};
      x = way == Way::kNearest ? nearest(x, axis, 0.0)
          : way == Way::kExact ? nearest(x, axis, 0.5)
          : way == Way::kCubic ? cubic(x, axis)
                               : linear(x, axis);
    }
    return x;
  }
};
constexpr std::string_view name_of(Way way) {
  return way == Way::kNearest ? "upsample_nearest"
         : way == Way::kExact ? "upsample_nearest_exact"
         : way == Way::kCubic ? "upsample_cubic"
                              : "upsample_linear";
}
constexpr std::string_view name_of_backward(Way way) {
  return way == Way::kNearest ? "upsample_nearest_backward"
         : way == Way::kExact ? "upsample_nearest_exact_backward"
         : way == Way::kCubic ? "upsample_cubic_backward"
                              : "upsample_linear_backward";
}
template <Way way, size_t count>
constexpr auto kResize =
    row(name_of(way), [](const Resize<way, count>& resize, const weft::Tensor& x) {
      if (way == Way::kNearest || way == Way::kExact) return resize(x);
      return x.dtype().is_float() ? resize(wide(x)) : resize(x.cast(dtypes::float32)).round();
    });
template <Way way, size_t count>
constexpr auto kResizeBackward =
    row(name_of_backward(way),
        [](Ints shape, const Resize<way, count>& resize, const weft::Tensor& by) {
          return pulled_back(ints(Sizes(shape)), by, resize);
        });

// The arguments of operators: sizes, align_corners where there is a choice, and a factor per axis.
template <Way way, class... Factors>
weft::Tensor aligned(const Shaped& s, const at::Tensor& self, IntArrayRef size, bool align_corners,
                     Factors... factors) {
  constexpr size_t count = sizeof...(Factors);
  const weft::Tensor x = operand(self);
  const DType dtype = x.dtype().is_float() ? wide_dtype(x.dtype()) : x.dtype();
  return call<kResize<way, count>>({dtype, ints(s.out().sizes())},
                                   Resize<way, count>(size, {factors...}, align_corners), x);
}
template <Way way, class... Factors>
weft::Tensor by_factors(const Shaped& s, const at::Tensor& self, IntArrayRef size,
                        Factors... factors) {
  return aligned<way, Factors...>(s, self, size, false, factors...);
}
template <Way way, class... Factors>
weft::Tensor aligned_backward(const Shaped&, const at::Tensor& gradient, IntArrayRef size,
                              IntArrayRef input, bool align_corners, Factors... factors) {
  constexpr size_t count = sizeof...(Factors);
  const weft::Tensor g = wide_operand(gradient);
  return call<kResizeBackward<way, count>>(
      {g.dtype(), ints(input)}, Resize<way, count>(size, {factors...}, align_corners), g);
}
template <Way way, class... Factors>
weft::Tensor by_factors_backward(const Shaped& s, const at::Tensor& gradient, IntArrayRef size,
                                 IntArrayRef input, Factors... factors) {
  return aligned_backward<way, Factors...>(s, gradient, size, input, false, factors...);
}

// NOLINTBEGIN: PyTorch's macros
#define WEFT_UPSAMPLE(name, formula, way, ...)                                                  \
  structured<at::meta::structured_##name, formula<Way::way, __VA_ARGS__>, at::_ops::name,       \
             at::_ops::name##_out>(m);                                                          \
  structured<at::meta::structured_##name##_backward, formula##_backward<Way::way, __VA_ARGS__>, \
             at::_ops::name##_backward, at::_ops::name##_backward_grad_input>(m)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  WEFT_UPSAMPLE(upsample_nearest1d, by_factors, kNearest, Factor);
  WEFT_UPSAMPLE(upsample_nearest2d, by_factors, kNearest, Factor, Factor);
  WEFT_UPSAMPLE(upsample_nearest3d, by_factors, kNearest, Factor, Factor, Factor);
  WEFT_UPSAMPLE(_upsample_nearest_exact1d, by_factors, kExact, Factor);
  WEFT_UPSAMPLE(_upsample_nearest_exact2d, by_factors, kExact, Factor, Factor);
  WEFT_UPSAMPLE(_upsample_nearest_exact3d, by_factors, kExact, Factor, Factor, Factor);
  WEFT_UPSAMPLE(upsample_linear1d, aligned, kLinear, Factor);
  WEFT_UPSAMPLE(upsample_bilinear2d, aligned, kLinear, Factor, Factor);
  WEFT_UPSAMPLE(upsample_trilinear3d, aligned, kLinear, Factor, Factor, Factor);
  WEFT_UPSAMPLE(upsample_bicubic2d, aligned, kCubic, Factor, Factor);
}
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
