// Random orders and choices.
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tensor/generator.h"
#include "tensor/operand.h"
#include "tensor/promote.h"
#include "tensor/random_bits.h"
#include "value/number_watch.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

Tensor Tensor::randperm(int64_t n, DType dtype, std::string_view device) {
  checked_numel("randperm", {n});
  if (n > 0) check_fits("randperm", dtype, n - 1);
  return draw_blocks(find_device(device), {n}).argsort().cast(dtype);
}

// Weights add up to the ends of intervals; a number below their sum is in one of them.
Tensor chosen_with_replacement(const Tensor& weights, const Tensor& units) {
  const Tensor ends = weights.cumsum(-1).unsqueeze(-2);  // (..., 1, n)
  const Tensor sum = ends.at({Ellipsis{}, Slice{.start = -1}});
  // An end that rounding has made the sum is not reached; an interval of weight 0 never is.
  const Tensor point = (units.unsqueeze(-1) * sum).binary(Op::CMPLT, ends).unary(Op::NOT);
  const Tensor is_before = point.binary(Op::AND, ends.binary(Op::CMPLT, sum));
  return is_before.cast(dtypes::int32).sum(std::vector<int64_t>{-1});
}

// The largest of weight / exponential: the first to happen of events with these rates.
Tensor chosen_without_replacement(const Tensor& weights, const Tensor& units, int64_t count) {
  const Tensor waiting = (1.0 - units).unary(Op::LOG).neg().binary(Op::MAX, 1e-30);
  return (weights / waiting).topk(count, -1).second.cast(dtypes::int32);
}

Tensor Tensor::multinomial(int64_t num_samples, bool replacement) const {
  if (ndim() < 1 || ndim() > 2 || shape().back() == 0) {
    throw ShapeError(fmt::format("[multinomial] weights are a vector or a matrix, not {}",
                                 text_of_shape(shape())));
  }
  assume_exact({num_samples});
  assume_exact(shape());
  if (num_samples <= 0 || (!replacement && num_samples > shape().back())) {
    throw ShapeError(fmt::format("[multinomial] {} samples of {} weights{}", num_samples,
                                 shape().back(), replacement ? "" : " without replacement"));
  }
  const Tensor weights = dtype() == dtypes::float64 ? *this : cast(dtypes::float32);
  Sizes shape(weights.shape());
  const bool repeats = replacement || num_samples == 1;
  if (repeats) shape.back() = num_samples;
  const Tensor units = rand(shape, weights.dtype(), weights.device());
  return repeats ? chosen_with_replacement(weights, units)
                 : chosen_without_replacement(weights, units, num_samples);
}

}  // namespace weft
