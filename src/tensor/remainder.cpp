// Remainders from quotients: of narrow floats in float64, where the products are exact, and of
// float64 with the product in two parts; so in float32 where the device has no float64.
#include "tensor/remainder.h"

#include <cmath>
#include <cstdint>

#include "ir/dtype.h"
#include "ir/op.h"
#include "tensor/term.h"
#include "tensor/widest_float.h"

namespace weft {
namespace {

constexpr double kInfinity = HUGE_VAL;

Term wide(const Term& x) { return cast(x, widest_float(x.value()->device())); }
Term magnitude(const Term& x) { return negate(sign_bit(x), x); }

// The upper half of the bits, so that products of halves are exact.
Term upper_half(const Term& x) {
  const Term scaled = x * (x.is_64() ? 0x1.0000002p+27 : 0x1.001p+12);  // 2^27 + 1, 2^12 + 1
  return scaled - (scaled - x);
}

// x * y - product, where the product is x * y rounded.
Term rounding_of(const Term& x, const Term& y, const Term& product) {
  const Term x_high = upper_half(x), y_high = upper_half(y);
  const Term x_low = x - x_high, y_low = y - y_high;
  return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
}

// |x| - |y| floor(|x| / |y|), of float64 or float32. The quotient is off by one at most while it is
// exact.
Term positive_remainder(const Term& x, const Term& y, bool is_exact) {
  const double most = x.is_64() ? 0x1p+990 : 0x1p+110;  // halves of larger ones overflow
  const Term quotient = floor(x / y).detach();
  const Term product = quotient * y;
  Term rest = x - product;
  if (!is_exact) {
    const Term fits = (y < most) & (quotient < most) & (product < kInfinity);
    const Term q = where(fits, quotient, 1.0).detach(), divisor = where(fits, y, 1.0).detach();
    rest = rest - where(fits, rounding_of(q, divisor, q * divisor), 0.0);
  }
  rest = where(rest < 0, rest + y, rest);
  rest = where(y < rest, rest - y, where(rest == y, 0.0, rest));
  return where((rest < 0) | (y < rest), 0.0, rest);
}

// x without a multiple of y, of float32: less than 2^-22 x where x is 2^24 y or more. Exact: what
// is left is a multiple of the last places of both factors, with at most 24 bits.
Term large_remainder(const Term& x, const Term& y) {
  constexpr double most = 0x1p+110;
  const Term quotient = (x / y).detach();
  const Term fits = (y < most) & (x < most) & (quotient < most) & (!(quotient < 0x1p+24));
  const Term q = where(fits, quotient, 1.0).detach(), by = where(fits, y, 1.0).detach();
  const Term product = q * by;
  const Term rest = (x - product) - rounding_of(q, by, product);
  const Term bits = bitcast(q, dtypes::int32);
  const Term exponent = bits & bits.like(int64_t(0x7f800000));
  const Term last = bitcast(exponent - exponent.like(int64_t(23) << 23), dtypes::float32);
  return where(fits, where(rest < 0, rest + last * by, rest), x);
}

}  // namespace

Term remainder_toward_zero(const Term& x, const Term& y) {
  const Term size = magnitude(wide(x)), divisor = magnitude(wide(y));
  const bool is_exact = size.is_64() && !x.is_64();
  const Term is_endless = (divisor == kInfinity) & (size < kInfinity);
  const Term by = where(is_endless, 1.0, divisor);
  Term rest = size;
  if (!size.is_64()) {  // quotients past 2^24 leave a remainder that is divided again
    for (int i = 0; i < 2; i++) rest = large_remainder(rest, by);
  }
  rest = positive_remainder(rest, by, is_exact);
  return cast(negate(sign_bit(x), where(is_endless, size, rest)), x.dtype());
}

Term remainder_down(const Term& x, const Term& y) {
  const Term rest = remainder_toward_zero(x, y);
  const Term is_other_side = (rest != rest.like(0.0)) & ((rest < 0) != (y < 0));
  return where(is_other_side, rest + y, rest);
}

// (x - x % y) / y is whole but for its rounding.
Term quotient_down(const Term& x, const Term& y) {
  const Term rest = remainder_down(x, y);
  const Term quotient = x / y, whole = apply(Op::ROUND, (x - rest) / y);
  // With a zero or an infinity the quotient says it all.
  const Term is_plain = (rest == rest) & (magnitude(y) < kInfinity);
  return where(is_plain & (whole != whole.like(0.0)), whole, floor(quotient));
}

}  // namespace weft
