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
#include "tensor/calls.h"
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
Pair sum_of(const Term& a, const Term& b) {  // |b| < 2 |a|, as powers of two
  const Term high = a + b;
  return {high, b - (high - a)};
}
Pair product_of(const Term& a, const Term& b) {
  const auto upper_half = [](const Term& x) {
    const Term scaled = x * (x.is_64() ? 0x1.0000002p+27 : 0x1.001p+12);
    return scaled - (scaled - x);
  };
  const Term high = a * b, a_high = upper_half(a), b_high = upper_half(b);
  const Term a_low = a - a_high, b_low = b - b_high;
  return {high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low};
}
Pair product_of(const Pair& a, const Pair& b) {
  const Pair first = product_of(a.high, b.high);
  return {first.high, first.low + (a.high * b.low + a.low * b.high)};
}
Pair pair_like(const Term& x, double high, double low) { return {x.like(high), x.like(low)}; }

// A positive finite number: m 2^e, m from 3/4 to 3/2.
struct Scaled {
  Term m, e;
};
Scaled scaled(const Term& x) {
  const bool is_64 = x.is_64();
  const Term is_tiny = x < (is_64 ? 0x1p-900 : 0x1p-100);
  const Term bits = bitcast(where(is_tiny, x * 0x1p+100, x), is_64 ? dtypes::int64 : dtypes::int32);
  const Term width = bits.like(int64_t(is_64 ? 52 : 23));
  const Term based = bits - bits.like(is_64 ? 0x3fe8000000000000 : int64_t(0x3f400000));  // of 3/4
  const Term exponent = apply(Op::SHR, based, width);
  return {bitcast(bits - apply(Op::SHL, exponent, width), x.dtype()),
          cast(exponent, x.dtype()) - where(is_tiny, x.like(100.0), x.like(0.0))};
}

// (m - 1) / (m + 1)
Pair ratio_of(const Term& m) {
  const Pair below = sum_of(m.like(1.0), m);  // m + 1; m - 1 is exact
  const Term above = m - 1.0, s = above / below.high;
  const Pair product = product_of(s, below.high);
  return {s, (((above - product.high) - product.low) - s * below.low) / below.high};
}

// s + s^3/3 + s^5/5 + ..., to 32 bits of float32 and to 66 of float64, for which the second term is
// a pair, too.
Pair series_of(const Pair& s) {
  const Term square = s.high * s.high;
  if (!s.high.is_64()) {
    constexpr double terms[] = {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11};
    return {s.high, s.low + s.high * square * polynomial(square, terms)};
  }
  constexpr double terms[] = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17,
                              1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29};
  const Pair third = pair_like(s.high, 0x1.5555555555555p-2, 0x1.5555555555555p-56);
  const Pair cube = product_of(product_of(product_of(s, s), s), third);
  const Pair sum = sum_of(s.high, cube.high);
  const Term rest = s.high * square * square * polynomial(square, terms);
  return sum_of(sum.high, sum.low + (s.low + cube.low + rest));
}

// log2 of a positive finite number as a pair: with s = (m - 1) / (m + 1) it is
// e + 2 log2(e) (s + s^3/3 + s^5/5 + ...).
Pair log2_of(const Term& x) {
  const auto [m, e] = scaled(x);
  const Pair factor = x.is_64() ? pair_like(x, 0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55)
                                : pair_like(x, 0x1.715476p+1, 0x1.4ae0cp-25);
  const Pair product = product_of(series_of(ratio_of(m)), factor);
  const Pair fraction = sum_of(product.high, product.low);
  const Pair all = sum_of(where(e == 0, fraction.high, e), where(e == 0, 0.0, fraction.high));
  return sum_of(all.high, all.low + fraction.low);
}

// y log2(size), of numbers that are small enough.
Pair exponent_of(const Term& y, const Term& size) {
  const auto [high, low] = log2_of(size);
  const Pair exact = product_of(y, high);
  return sum_of(exact.high, exact.low + y * low);
}

// 2 to the power of y log2(size), with the product as a pair. What that adds is a constant for the
// gradient.
Term power_of_two(const Term& y, const Term& size, const Term& logarithm) {
  const Term product = y * logarithm;
  const Term fits = (magnitude(product) < 256.0) & (magnitude(y) < 0x1p+100);
  const Pair exponent = exponent_of(where(fits, y, 0.0).detach(), size.detach());
  const Term main = where(fits, product + (exponent.high - product).detach(), product);
  return apply(Op::EXP2, main) * (1.0 + (exponent.low * 0x1.62e43p-1).detach());
}

// 2^n of float64, n whole and from -1022 to 1023
Term scale_by(const Term& n) {
  const Term biased = cast(n, dtypes::int64) + cast(n, dtypes::int64).like(int64_t(1023));
  return bitcast(apply(Op::SHL, biased, biased.like(int64_t(52))), dtypes::float64);
}

// The same of float64, rounded once, so that a power that is a number is that number. With
// 2^(n + f) = 2^n e^t, f at most 1/2, and e^t = 1 + t + t^2/2 + ...
Term power_of_two_64(const Term& y, const Term& size, const Term& logarithm) {
  constexpr double terms[] = {1.0 / 2,          1.0 / 6,        1.0 / 24,        1.0 / 120,
                              1.0 / 720,        1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                              1.0 / 3628800,    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
                              1.0 / 87178291200};
  const Term product = y * logarithm;
  const Term fits = (magnitude(product) < 1100.0) & (magnitude(y) < 0x1p+900);
  const auto [high, low] = exponent_of(where(fits, y, 0.0).detach(), size.detach());
  const Term n = floor(high + 0.5), half = floor(n * 0.5);
  const Pair t =
      product_of(Pair{high - n, low}, pair_like(high, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56));
  const Pair sum = sum_of(t.high.like(1.0), t.high);
  const Term tail = t.high * t.high * polynomial(t.high, terms);
  const Term more = tail + (t.low + t.low * (t.high + tail));  // e^low is 1 + low
  const Term power = (sum.high + (sum.low + more)) * scale_by(half) * scale_by(n - half);
  if (!product.value()->is_tracked()) return where(fits, power, apply(Op::EXP2, product));
  const Term one = apply(Op::EXP2, where(fits, product - product.detach(), 0.0));
  return where(fits, power.detach() * one, apply(Op::EXP2, where(fits, 0.0, product)));
}

// How a power is computed: for a result of these bits, which may be fewer than those of x and y.
enum class Bits : uint8_t { k32, k64 };

// As pow of C, of float64, or of float32 where there is none. Zero, one and infinities are taken
// out of the logarithm, so that its gradient is finite.
template <Bits bits>
Term real_power(const Term& x, const Term& y) {
  const Term is_negative = sign_bit(x), size = negate(is_negative, x);
  const Term is_zero = size == 0;
  const Term is_plain = (!is_zero) & (size < kInfinity);
  const Term base = where(is_zero, 1.0, size), logarithm = apply(Op::LOG2, base);
  const Term is_whole = floor(y) == y, half = y * 0.5;
  const Term is_odd = is_whole & (floor(half) != half);
  const Term of_zero = where(y < 0, kInfinity, where(is_nan(y), y, 0.0));
  const Term plain = where(is_plain, base, 1.0);
  const Term of_plain = bits == Bits::k64 ? power_of_two_64(y, plain, logarithm)
                        : y.is_64()       ? apply(Op::EXP2, y * logarithm)
                                          : power_of_two(y, plain, logarithm);
  const Term power = where(is_zero, of_zero, of_plain);
  const Term is_undefined = is_negative & is_plain & (!is_whole);
  const Term with_sign =
      negate(is_negative & is_odd, power) * where(is_undefined, x.like(std::nan("")), 1.0);
  const Term is_endless = negate(y < 0, y) == kInfinity;
  const Term is_one =
      ((!is_plain) & (y == 0)) | ((size == 1) & is_endless) | ((x == 1) & is_nan(y));
  return where(is_one, 1.0, with_sign);
}

constexpr auto kRealPower64 = row<real_power<Bits::k64>>("pow64");
constexpr auto kRealPower32 = row<real_power<Bits::k32>>("pow32");

// Rounded once where the dtype is narrower than what it is computed in.
Term power_of(const Term& x, const Term& y) {
  if (x.is_64()) return call_like<kRealPower64>(x, y);
  const DType wide = widest_float(x.value()->device());
  return cast(call_like<kRealPower32>(cast(x, wide), cast(y, wide)), x.dtype());
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

constexpr auto kIntegerPower = row<integer_power>("integer_pow");

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
  if (!met.dtype.is_float()) return tensor_of(call_like<kIntegerPower>(met.x, met.y), met.dtype);
  return of_reals("pow", *this, y, power_of);
}

Tensor Tensor::reverse_pow(Number x) const {
  const Met met = meet("pow", *this, x);
  if (met.dtype.is_bool()) return cast(dtypes::int32).reverse_pow(x);
  if (!met.dtype.is_float()) return tensor_of(call_like<kIntegerPower>(met.y, met.x), met.dtype);
  if (double_of(x) == 2) return exp2();
  return of_reals("pow", *this, x, [](const Term& y, const Term& b) { return power_of(b, y); });
}

}  // namespace weft
