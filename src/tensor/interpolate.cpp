// Interpolation: axis after axis, sums of few elements with weights of their distances.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "tensor/positions.h"
#include "value/number_watch.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

// Elements of an axis by an index that is surely in range.
Tensor pick(const Tensor& x, size_t axis, const Tensor& index) {
  return Chosen{x, int64_t(axis), int64_t(axis) + 1, read(index)}.read();
}

// A vector of one number for each element of the axis, as an operand.
Tensor along_axis(const Tensor& x, size_t axis, const Tensor& vector) {
  Sizes along(x.view().rank() - axis, 1);
  along[0] = vector.numel();
  return vector.reshape(along);
}

// Where the elements of the result lie between those of an axis.
struct Scale {
  int64_t from, to;
  DType in;  // the dtype to compute in, as PyTorch does
  bool align_corners;
};

Tensor source_places(Device& device, const Scale& p) {
  const Tensor place = positions(device, p.to).cast(p.in);
  if (p.align_corners) {
    return place * (p.to > 1 ? double(p.from - 1) / double(p.to - 1) : 0.0);
  }
  return (place + 0.5) * (double(p.from) / double(p.to)) - 0.5;
}

Tensor clamped(const Tensor& index, int64_t size) {
  return index.binary(Op::MAX, int64_t(0)).binary(Op::MIN, size - 1);
}

Tensor nearest(const Tensor& x, size_t axis, const Scale& p, double offset) {
  Device& device = device_of(x);
  const Tensor place = positions(device, p.to).cast(p.in);
  const Tensor scaled = (place + offset) * (double(p.from) / double(p.to));
  return pick(x, axis, clamped(scaled.unary(Op::FLOOR).cast(dtypes::int32), p.from));
}

Tensor linear(const Tensor& x, size_t axis, const Scale& p) {
  const Tensor source = source_places(device_of(x), p).binary(Op::MAX, 0.0);
  const Tensor low = clamped(source.cast(dtypes::int32), p.from);
  const Tensor high = clamped(low + int64_t(1), p.from);
  const Tensor weight = along_axis(x, axis, source - low.cast(p.in));
  const Tensor left = pick(x, axis, low);
  return left + (pick(x, axis, high) - left) * weight;
}

// The weights of 4 elements around, by Keys' kernel with a = -0.75.
std::vector<Tensor> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  const auto near = [&](const Tensor& x) { return ((x * (a + 2) - (a + 3)) * x) * x + 1.0; };
  const auto far = [&](const Tensor& x) { return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
}

Tensor cubic(const Tensor& x, size_t axis, const Scale& p) {
  const Tensor source = source_places(device_of(x), p);
  const Tensor floor = source.unary(Op::FLOOR);
  const Tensor first = floor.cast(dtypes::int32);
  const std::vector<Tensor> weights = cubic_weights(source - floor);
  Tensor sum = x.zeros_like();
  for (int64_t i = 0; i < 4; i++) {
    const Tensor part = pick(x, axis, clamped(first + (i - 1), p.from));
    const Tensor term = part * along_axis(x, axis, weights[size_t(i)]);
    sum = i == 0 ? term : sum + term;
  }
  return sum;
}

Tensor resized(const Tensor& x, size_t axis, Interpolation mode, const Scale& p) {
  if (mode == Interpolation::kNearest) return nearest(x, axis, p, 0.0);
  if (mode == Interpolation::kNearestExact) return nearest(x, axis, p, 0.5);
  return mode == Interpolation::kLinear ? linear(x, axis, p) : cubic(x, axis, p);
}

}  // namespace

Tensor Tensor::interpolate(Ints size, Interpolation mode, bool align_corners) const {
  const size_t first = view_.rank() - size.size();
  if (size.empty() || size.size() > view_.rank()) {
    throw ShapeError(fmt::format("[interpolate] {} to sizes {}: one for each of the last axes",
                                 text_of_shape(shape()), text_of_shape(size)));
  }
  const bool is_nearest = mode == Interpolation::kNearest || mode == Interpolation::kNearestExact;
  const DType in = dtype() == dtypes::float64 ? dtypes::float64 : dtypes::float32;
  Tensor x = is_nearest ? *this : cast(in);
  for (size_t i = 0; i < size.size(); i++) {
    const int64_t from = view_.shape[first + i];
    assume_exact({from, size[i]});
    if (size[i] <= 0 || from <= 0) {
      throw ShapeError(fmt::format("[interpolate] {} to sizes {}: they are at least 1",
                                   text_of_shape(shape()), text_of_shape(size)));
    }
    x = resized(x, first + i, mode, {from, size[i], in, align_corners});
  }
  if (!is_nearest && !dtype().is_float()) x = x.unary(Op::ROUND);
  return x.cast(dtype());
}

}  // namespace weft
