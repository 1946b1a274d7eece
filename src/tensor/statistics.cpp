// Reductions that are made of others: of truth, of places, of spread, of exponentials.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "tensor/calls.h"
#include "tensor/operand.h"
#include "tensor/places.h"
#include "tensor/term.h"
#include "value/number_watch.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

Tensor Tensor::sum(const Axes& axes, bool keepdim, DType dtype) const {
  return cast(dtype).reduce(Op::ADD, axes, keepdim).cast(dtype);
}
Tensor Tensor::prod(const Axes& axes, bool keepdim, DType dtype) const {
  return cast(dtype).reduce(Op::MUL, axes, keepdim).cast(dtype);
}
Tensor Tensor::any(const Axes& axes, bool keepdim) const {
  return cast(dtypes::bool_).reduce(Op::OR, axes, keepdim);
}
Tensor Tensor::all(const Axes& axes, bool keepdim) const {
  return cast(dtypes::bool_).reduce(Op::AND, axes, keepdim);
}

// --------------------------------------------------------------------------------------- of places

namespace {

constexpr auto kPlaceOfBest = row("argreduce", [](Op op, int64_t along, const Tensor& t) {
  const Axes over = std::vector<int64_t>{along};
  Tensor is_best = t.eq(t.reduce(op, over, true));
  if (t.dtype().is_float()) is_best = is_best.bitwise_or(t.isnan());
  return Tensor::where(is_best, places_along(t, size_t(along)), t.shape()[size_t(along)])
      .reduce(Op::MIN, over, true);
});

// The first place of the best element, which is NaN where there is one.
Tensor place_of_best(std::string_view what, Op op, const Tensor& given, std::optional<int64_t> axis,
                     bool keepdim) {
  const Tensor whole = given.dtype().is_bool() ? given.cast(dtypes::uint8) : given;
  const Tensor x = axis && whole.ndim() > 0 ? whole : whole.flatten();
  const size_t along = axis_of(what, axis.value_or(0), x.shape().size());
  const int64_t count = x.shape()[along];
  if (count == 0 && x.numel() == 0) {
    Sizes others(x.shape());
    others[along] = 1;
    if (!axis || checked_numel(what, others) > 0) {
      throw ShapeError(
          fmt::format("[{}] {} has no element along the axis", what, text_of_shape(given.shape())));
    }
  }
  Sizes shape(x.shape());
  shape[along] = 1;
  const DType dtype = count > INT32_MAX ? dtypes::int64 : dtypes::int32;
  const Tensor first = call<kPlaceOfBest>({dtype, shape}, op, int64_t(along), x);
  if (!axis) return keepdim ? first.reshape(Sizes(given.shape().size(), 1)) : first.reshape(Ints{});
  if (given.ndim() == 0) return first.reshape(Ints{});
  return keepdim ? first : first.squeeze(int64_t(along));
}

}  // namespace

Tensor places_along(const Tensor& x, size_t axis) {
  const int64_t count = x.shape()[axis];
  const DType dtype = count > INT32_MAX ? dtypes::int64 : dtypes::int32;
  Sizes shape(x.shape().size(), 1);
  shape[axis] = count;
  return Tensor::arange(int64_t(0), count, int64_t(1), dtype, x.device()).reshape(shape);
}

Tensor Tensor::argmax(std::optional<int64_t> axis, bool keepdim) const {
  return place_of_best("argmax", Op::MAX, *this, axis, keepdim);
}
Tensor Tensor::argmin(std::optional<int64_t> axis, bool keepdim) const {
  return place_of_best("argmin", Op::MIN, *this, axis, keepdim);
}

// --------------------------------------------------------------------------------------- of spread

namespace {

// The elements that one result of the reduction is made of.
int64_t count_of(std::string_view what, const Tensor& x, const Axes& axes) {
  if (!axes) return x.numel();
  int64_t count = 1;
  for (const int64_t axis : *axes) count *= x.shape()[axis_of(what, axis, x.shape().size())];
  return count;
}

struct Spread {
  Tensor variance, mean;  // in the dtype that they are computed in
};
Spread spread_of(std::string_view what, const Tensor& given, const Axes& axes, bool keepdim,
                 double correction) {
  const Tensor x = given.cast(computing_dtype(real_dtype(given.dtype())));
  assume_exact({count_of(what, x, axes)});
  const double freedom = std::max(0.0, double(count_of(what, x, axes)) - correction);
  const Tensor mean = x.mean(axes, true);
  const Tensor variance = x.sub(mean).square().sum(axes, keepdim).div(freedom);
  return {variance, keepdim ? mean : mean.reshape(variance.shape())};
}

}  // namespace

Tensor Tensor::var(const Axes& axes, bool keepdim, double correction) const {
  return spread_of("var", *this, axes, keepdim, correction).variance.cast(real_dtype(dtype()));
}
Tensor Tensor::std(const Axes& axes, bool keepdim, double correction) const {
  const Tensor variance = spread_of("std", *this, axes, keepdim, correction).variance;
  return variance.sqrt().cast(real_dtype(dtype()));
}
std::pair<Tensor, Tensor> Tensor::var_mean(const Axes& axes, bool keepdim,
                                           double correction) const {
  const auto [variance, mean] = spread_of("var_mean", *this, axes, keepdim, correction);
  return {variance.cast(real_dtype(dtype())), mean.cast(real_dtype(dtype()))};
}
std::pair<Tensor, Tensor> Tensor::std_mean(const Axes& axes, bool keepdim,
                                           double correction) const {
  const auto [variance, mean] = spread_of("std_mean", *this, axes, keepdim, correction);
  return {variance.sqrt().cast(real_dtype(dtype())), mean.cast(real_dtype(dtype()))};
}

// The maximum comes out of the exponentials, unless it is infinite: then they say it themselves.
Tensor Tensor::logsumexp(const Axes& axes, bool keepdim) const {
  const DType result = real_dtype(dtype());
  const Tensor x = cast(computing_dtype(result));
  if (x.numel() == 0) return x.exp().sum(axes, keepdim).log().cast(result);
  const Tensor most = x.max(axes, true).detach();
  const Tensor shift = where(most.isinf(), 0.0, most);
  const Tensor sum = x.sub(shift).exp().sum(axes, keepdim);
  return sum.log().add(keepdim ? shift : shift.reshape(sum.shape())).cast(result);
}

}  // namespace weft
