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
#include "tensor/deferred_term.h"
#include "tensor/operand.h"
#include "tensor/term.h"
#include "tensor/widest_float.h"
#include "weft/tensor.h"

namespace weft {
namespace {

constexpr double kInfinity = HUGE_VAL;

Term magnitude(const Term& x) { return negate(sign_bit(x), x); }

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

// The sum of two numbers, the second far smaller: what is lost when the first is rounded.
struct Pair {
  Term high, low;
};
Pair sum_of(const Term& a, const Term& b) {  // |a| >= |b|
  const Term high = a + b;
  return {high, b - (high - a)};
}
Pair product_of(const Term& a, const Term& b) {  // of float32
  const auto upper_half = [](const Term& x) {
    const Term scaled = x * 0x1.001p+12;
    return scaled - (scaled - x);
  };
  const Term high = a * b, a_high = upper_half(a), b_high = upper_half(b);
  const Term a_low = a - a_high, b_low = b - b_high;
  return {high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

// log2 of a positive finite float32 as a pair: with x = m 2^e, m from 3/4 to 3/2, and
// s = (m - 1) / (m + 1), it is e + 2 log2(e) (s + s^3/3 + s^5/5 + ...).
Pair log2_of(const Term& x) {
  const Term is_tiny = x < 0x1p-100;
  const Term bits = bitcast(where(is_tiny, x * 0x1p+100, x), dtypes::int32);
  const Term based = bits - bits.like(int64_t(0x3f400000));  // of 3/4
  const Term exponent = apply(Op::SHR, based, bits.like(int64_t(23)));
  const Term m = bitcast(bits - apply(Op::SHL, exponent, bits.like(int64_t(23))), dtypes::float32);
  const Term e = cast(exponent, dtypes::float32) - where(is_tiny, x.like(100.0), x.like(0.0));
  const Pair below = sum_of(m, m.like(1.0));  // m + 1; m - 1 is exact
  const Term above = m - 1.0, s = above / below.high;
  const Pair product = product_of(s, below.high);
  const Term s_low = (((above - product.high) - product.low) - s * below.low) / below.high;
  constexpr double terms[] = {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11};
  const Term square = s * s, more = s * square * polynomial(square, terms);
  constexpr double factor = 0x1.715476p+1, factor_low = 0x1.4ae0cp-25;  // of 2 log2(e)
  const Pair first = product_of(s, s.like(factor));
  const Term low = first.low + (s * factor_low + (s_low + more) * factor);
  const Pair fraction = sum_of(first.high, low);
  const Pair all = sum_of(where(e == 0, fraction.high, e), where(e == 0, 0.0, fraction.high));
  return sum_of(all.high, all.low + fraction.low);
}

// 2 to the power of y log2(size): where there is no float64, with the product as a pair. What that
// adds is a constant for the gradient.
Term power_of_two(const Term& y, const Term& size, const Term& logarithm) {
  const Term product = y * logarithm;
  if (y.is_64()) return apply(Op::EXP2, product);
  const auto [high, low] = log2_of(size.detach());
  const Term fits = (magnitude(product) < 256.0) & (magnitude(y) < 0x1p+100);
  const Pair exact = product_of(where(fits, y, 0.0).detach(), high);
  const Pair exponent = sum_of(exact.high, exact.low + where(fits, y, 0.0).detach() * low);
  const Term main = where(fits, product + (exponent.high - product).detach(), product);
  return apply(Op::EXP2, main) * (1.0 + (exponent.low * 0x1.62e43p-1).detach());
}

// As pow of C, of float64, or of float32 where there is none. Zero, one and infinities are taken
// out of the logarithm, so that its gradient is finite.
Term real_power(const Term& x, const Term& y) {
  const Term is_negative = sign_bit(x), size = negate(is_negative, x);
  const Term is_zero = size == 0;
  const Term is_plain = (!is_zero) & (size < kInfinity);
  const Term base = where(is_zero, 1.0, size), logarithm = apply(Op::LOG2, base);
  const Term is_whole = floor(y) == y, half = y * 0.5;
  const Term is_odd = is_whole & (floor(half) != half);
  const Term of_zero = where(y < 0, kInfinity, where(is_nan(y), y, 0.0));
  const Term power =
      where(is_zero, of_zero, power_of_two(y, where(is_plain, base, 1.0), logarithm));
  const Term is_undefined = is_negative & is_plain & (!is_whole);
  const Term with_sign =
      negate(is_negative & is_odd, power) * where(is_undefined, x.like(std::nan("")), 1.0);
  const Term is_endless = negate(y < 0, y) == kInfinity;
  const Term is_one =
      ((!is_plain) & (y == 0)) | ((size == 1) & is_endless) | ((x == 1) & is_nan(y));
  return where(is_one, 1.0, with_sign);
}

// Rounded once where the dtype is narrower than what it is computed in.
Term power_of(const Term& x, const Term& y) {
  const DType wide = widest_float(x.value()->device());
  return cast(deferred<real_power>(cast(x, wide), cast(y, wide)), x.dtype());
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
  if (!met.dtype.is_float()) return tensor_of(deferred<integer_power>(met.x, met.y), met.dtype);
  return of_reals("pow", *this, y, power_of);
}

Tensor Tensor::reverse_pow(Number x) const {
  const Met met = meet("pow", *this, x);
  if (met.dtype.is_bool()) return cast(dtypes::int32).reverse_pow(x);
  if (!met.dtype.is_float()) return tensor_of(deferred<integer_power>(met.y, met.x), met.dtype);
  if (double_of(x) == 2) return exp2();
  return of_reals("pow", *this, x, [](const Term& y, const Term& b) { return power_of(b, y); });
}

}  // namespace weft
