// Powers: of reals by logarithms, of integers by squaring.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "tensor/operand.h"
#include "tensor/term.h"
#include "weft/tensor.h"

namespace weft {
namespace {

constexpr double kInfinity = HUGE_VAL;

double double_of(Number n) {
  return std::visit([](auto x) { return double(x); }, n);
}

// x * x * ..., by squaring
Term whole_power(const Term& x, uint64_t n) {
  std::optional<Term> result;
  Term square = x;
  for (; n != 0; n >>= 1) {
    if (n & 1) result = result ? *result * square : square;
    if (n > 1) square = square * square;
  }
  return *result;
}

// As pow of C, of float64. Zero, one and infinities are taken out of the logarithm, so that its
// gradient is finite.
Term real_power(const Term& x, const Term& y) {
  const Term is_negative = sign_bit(x), size = negate(is_negative, x);
  const Term is_zero = size == 0;
  const Term is_plain = (!is_zero) & (size < kInfinity);
  const Term logarithm = apply(Op::LOG2, where(is_zero, 1.0, size));
  const Term is_whole = floor(y) == y, half = y * 0.5;
  const Term is_odd = is_whole & (floor(half) != half);
  const Term of_zero = where(y < 0, kInfinity, where(is_nan(y), y, 0.0));
  const Term power = where(is_zero, of_zero, apply(Op::EXP2, y * logarithm));
  const Term is_undefined = is_negative & is_plain & (!is_whole);
  const Term with_sign =
      negate(is_negative & is_odd, power) * where(is_undefined, x.like(std::nan("")), 1.0);
  const Term is_endless = negate(y < 0, y) == kInfinity;
  const Term is_one =
      ((!is_plain) & (y == 0)) | ((size == 1) & is_endless) | ((x == 1) & is_nan(y));
  return where(is_one, 1.0, with_sign);
}

// Rounded once where the dtype is narrower than float64.
Term power_of(const Term& x, const Term& y) {
  return cast(real_power(cast(x, dtypes::float64), cast(y, dtypes::float64)), x.dtype());
}

// Of integers of one dtype, bit by bit of the exponent. To a negative power 1 / x rounds to 0 but
// for 1 and -1.
Term integer_power(const Term& x, const Term& y) {
  const int bits = y.dtype().bits() - int(y.dtype().is_signed());
  Term result = x.like(int64_t(1)), square = x;
  const Term one = y.like(int64_t(1)), zero = y.like(int64_t(0));
  for (int i = 0; i < bits; i++) {
    const Term is_set = ((y & y.like(int64_t(1) << i)) != zero);
    result = where(is_set, result * square, result);
    if (i + 1 < bits) square = square * square;
  }
  if (!y.dtype().is_signed()) return result;
  const Term minus_one = x.like(int64_t(-1));
  const Term odd = where((y & one) != zero, minus_one, x.like(int64_t(1)));
  const Term inverse =
      where(x == minus_one, odd, where(x == x.like(int64_t(1)), x, x.like(int64_t(0))));
  return where(y < zero, inverse, result);
}

// Whole powers up to this one are products.
constexpr double kMostFactors = 8;

// 1 for any x, with a gradient that is 0.
Tensor ones_of(const Tensor& x, DType dtype) {
  const Term always(wrapped_constant(device_of(x), dtypes::bool_, true));
  return tensor_of(where(always, 1.0, Term(cast_value(read(x), dtype))), dtype);
}

Tensor power_of_number(const Tensor& x, Number y) {
  const double n = double_of(y);
  const bool is_real = x.dtype().is_float() || std::holds_alternative<double>(y);
  if (!is_real) {
    if (n < 0) {
      throw DTypeError(fmt::format("[pow] {} to the power {} is no integer: cast to a float first",
                                   x.dtype().name(), n));
    }
    const Met met = meet("pow", x, int64_t(1));
    if (n == 0) return ones_of(x, met.dtype);
    const auto exponent = std::visit([](auto v) { return uint64_t(v); }, y);
    return tensor_of(whole_power(met.x, exponent), met.dtype);
  }
  if (n == 0) return ones_of(x, real_dtype(x.dtype()));
  if (n == 0.5) return of_real(x, [](const Term& t) { return sqrt(t); });
  return of_real(x, [n](const Term& t) {
    if (n != std::floor(n) || std::abs(n) > kMostFactors) return power_of(t, t.like(n));
    return whole_power(n < 0 ? 1 / t : t, uint64_t(std::abs(n)));
  });
}

}  // namespace

Tensor Tensor::pow(Operand y) const {
  if (y.tensor() == nullptr) return power_of_number(*this, y.number());
  const Met met = meet("pow", *this, y);
  if (met.dtype.is_bool()) return cast(dtypes::int32).pow(y);
  if (!met.dtype.is_float()) return tensor_of(integer_power(met.x, met.y), met.dtype);
  return of_reals("pow", *this, y, power_of);
}

Tensor Tensor::reverse_pow(Number x) const {
  const Met met = meet("pow", *this, x);
  if (met.dtype.is_bool()) return cast(dtypes::int32).reverse_pow(x);
  if (!met.dtype.is_float()) return tensor_of(integer_power(met.y, met.x), met.dtype);
  if (double_of(x) == 2) return exp2();
  return of_reals("pow", *this, x, [](const Term& y, const Term& b) { return power_of(b, y); });
}

}  // namespace weft
