// Functions of one real: roots, exponentials, logarithms, trigonometric and hyperbolic ones and
// their inverses.
#include <cmath>
#include <span>

#include "ir/op.h"
#include "tensor/calls.h"
#include "tensor/term.h"
#include "weft/tensor.h"

namespace weft {
namespace {

constexpr double kAtanIn32[] = {-0x1.55554ap-2, 0x1.999194p-3, -0x1.23b4eep-3, 0x1.b1e8d2p-4,
                                -0x1.f1dadap-5};
constexpr double kAtanIn64[] = {-0x1.555555555553dp-2, 0x1.99999999957e3p-3,  -0x1.24924922aabebp-3,
                                0x1.c71c70e52eb6ep-4,  -0x1.745cf8c599752p-4, 0x1.3b11179e69ab4p-4,
                                -0x1.10eba7dbc7d11p-4, 0x1.df0e5f0e37e57p-5,  -0x1.9cce9200777b9p-5,
                                0x1.37caec963502ep-5,  -0x1.2552713d7c94dp-6};
constexpr double kAsinIn32[] = {0x1.55554cp-3, 0x1.33387ap-4, 0x1.6caf0ap-5,
                                0x1.049p-5,    0x1.d9352ap-7, 0x1.334f3ap-5};
constexpr double kAsinIn64[] = {0x1.5555555555577p-3, 0x1.333333332e157p-4, 0x1.6db6db721016fp-5,
                                0x1.f1c71a95f1e95p-6, 0x1.6e8bdec1f5221p-6, 0x1.1c49f294ad322p-6,
                                0x1.ca1f572481e1fp-7, 0x1.758748531e4bbp-7, 0x1.6132d3c259059p-7,
                                0x1.e686454d84929p-9, 0x1.63715d626dfe2p-6, -0x1.57c225799158dp-6,
                                0x1.0b34c31b6794ap-5};

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLog10Of2 = 0x1.34413509f79ffp-2;

// pi / 2 in two parts: adding both rounds once.
struct Parts {
  double high, low;
};
Parts half_pi(const Term& x) {
  if (x.is_64()) return {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
  return {0x1.921fb6p+0, -0x1.777a5cp-25};
}

Term tan_of(const Term& x) { return apply(Op::SIN, x) / apply(Op::COS, x); }

// t + t^3 p(t^2), |t| <= tan(pi / 8)
Term atan_near_zero(const Term& t) {
  const Term square = t * t;
  const std::span<const double> p = t.is_64() ? std::span<const double>(kAtanIn64) : kAtanIn32;
  return t + t * (square * polynomial(square, p));
}

// Of a positive x as y / z, in a quarter of a turn: atan(x) = pi/2 - atan(1/x) for x > 1, and
// atan(t) = pi/4 + atan((t - 1) / (t + 1)) for t past tan(pi / 8).
Term atan_of_ratio(const Term& y, const Term& z) {
  constexpr double split = 0.41421356237309503;
  const Term is_steep = z < y;
  const Term top = where(is_steep, z, y), bottom = where(is_steep, y, z);
  const Term is_middle = split * bottom < top;
  const Term t = where(is_middle, top - bottom, top) / where(is_middle, top + bottom, bottom);
  const auto [high, low] = half_pi(y);
  const Term offset_high = where(is_middle, y.like(high / 2), y.like(0.0));
  const Term offset_low = where(is_middle, y.like(low / 2), y.like(0.0));
  const Term angle = atan_near_zero(t);
  const Term first = offset_high + (angle + offset_low);
  return where(is_steep, (high - offset_high) + (low - (angle + offset_low)), first);
}

Term atan_of(const Term& x) {
  const Term is_negative = sign_bit(x), magnitude = negate(is_negative, x);
  return negate(is_negative, atan_of_ratio(magnitude, x.like(1.0)));
}

// From (0, pi/2) by the signs of both; zeros and infinities as in C.
Term atan2_of(const Term& y, const Term& x) {
  constexpr double infinity = HUGE_VAL;
  const Term y_is_negative = sign_bit(y), x_is_negative = sign_bit(x);
  const Term up = negate(y_is_negative, y), across = negate(x_is_negative, x);
  const Term both_zero = (up == 0) & (across == 0);
  const Term both_infinite = (up == infinity) & (across == infinity);
  const Term is_undefined = both_zero | both_infinite;
  const Term top = where(both_infinite, 1.0, where(both_zero, 0.0, up));
  const Term bottom = where(is_undefined, 1.0, across);
  const Term angle = atan_of_ratio(top, bottom);
  const auto [high, low] = half_pi(x);
  const Term turned = 2 * high - (angle - 2 * low);
  return negate(y_is_negative, where(x_is_negative, turned, angle));
}

// asin(s) = s + s^3 p(s^2) for s up to 1/2; past it, asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
struct HalfAngle {
  Term is_near, is_negative, root_angle;  // asin of |x| or of the root
};
HalfAngle half_angle(const Term& x) {
  const Term is_negative = sign_bit(x), magnitude = negate(is_negative, x);
  const Term is_near = magnitude < 0.5;
  const Term halved = (1 - where(is_near, 0.0, magnitude)) * 0.5;
  const Term square = where(is_near, magnitude * magnitude, halved);
  const Term root = where(is_near, magnitude, sqrt(halved));
  const std::span<const double> p = x.is_64() ? std::span<const double>(kAsinIn64) : kAsinIn32;
  return {is_near, is_negative, root + root * (square * polynomial(square, p))};
}

Term asin_of(const Term& x) {
  const auto [is_near, is_negative, angle] = half_angle(x);
  const auto [high, low] = half_pi(x);
  return negate(is_negative, where(is_near, angle, high - (2 * angle - low)));
}

Term acos_of(const Term& x) {
  const auto [is_near, is_negative, angle] = half_angle(x);
  const auto [high, low] = half_pi(x);
  const Term near = high - (negate(is_negative, angle) - low);
  return where(is_near, near, where(is_negative, 2 * high - (2 * angle - 2 * low), 2 * angle));
}

// exp(|x|) is e + 1; past the bound it would overflow, and the other half vanishes.
Term sinh_of(const Term& x) {
  const double most = x.is_64() ? 700 : 87;
  const Term is_negative = sign_bit(x), magnitude = negate(is_negative, x);
  const Term e = expm1(at_most(magnitude, most));
  const Term root = exp(where(most < magnitude, magnitude, 0.0) * 0.5);
  const Term large = (0.5 * root) * root;
  return negate(is_negative, where(most < magnitude, large, 0.5 * (e + e / (e + 1))));
}

Term cosh_of(const Term& x) {
  const double most = x.is_64() ? 700 : 87;
  const Term magnitude = negate(sign_bit(x), x);
  const Term e = exp(at_most(magnitude, most));
  const Term root = exp(where(most < magnitude, magnitude, 0.0) * 0.5);
  return where(most < magnitude, (0.5 * root) * root, 0.5 * e + 0.5 / e);
}

// log(|x| + sqrt(x^2 + 1)); past the bound log(2 |x|).
Term asinh_of(const Term& x) {
  constexpr double far = 0x1p28;
  const Term is_negative = sign_bit(x), magnitude = negate(is_negative, x);
  const Term inside = at_most(magnitude, far), square = inside * inside;
  const Term near = log1p(inside + square / (1 + sqrt(1 + square)));
  return negate(is_negative, where(far < magnitude, log(at_least(magnitude, far)) + kLn2, near));
}

// With t = x - 1: log1p(t + sqrt(t) sqrt(t + 2)), which is NaN for all negative t.
Term acosh_of(const Term& x) {
  constexpr double far = 0x1p28;
  const Term t = at_most(x, far) - 1;
  const Term near = log1p(t + sqrt(t) * sqrt(t + 2));
  return where(far < x, log(at_least(x, far)) + kLn2, near);
}

Term atanh_of(const Term& x) {
  const Term is_negative = sign_bit(x), magnitude = negate(is_negative, x);
  return negate(is_negative, 0.5 * (log1p(magnitude) - log1p(-magnitude)));
}

constexpr auto kAsin = row<asin_of>("asin");
constexpr auto kAcos = row<acos_of>("acos");
constexpr auto kAtan = row<atan_of>("atan");
constexpr auto kAtan2 = row<atan2_of>("atan2");
constexpr auto kSinh = row<sinh_of>("sinh");
constexpr auto kCosh = row<cosh_of>("cosh");
constexpr auto kAsinh = row<asinh_of>("asinh");
constexpr auto kAcosh = row<acosh_of>("acosh");
constexpr auto kAtanh = row<atanh_of>("atanh");

template <const auto& kRow>
Tensor called(const Tensor& x) {
  return of_real(x, [](const Term& t) { return call_like<kRow>(t); });
}

}  // namespace

Tensor Tensor::sqrt() const { return unary(Op::SQRT); }
Tensor Tensor::exp() const { return unary(Op::EXP); }
Tensor Tensor::exp2() const { return unary(Op::EXP2); }
Tensor Tensor::log() const { return unary(Op::LOG); }
Tensor Tensor::log2() const { return unary(Op::LOG2); }
Tensor Tensor::sin() const { return unary(Op::SIN); }
Tensor Tensor::cos() const { return unary(Op::COS); }
Tensor Tensor::reciprocal() const { return unary(Op::RECIP); }

Tensor Tensor::rsqrt() const {
  return of_real(*this, [](const Term& x) { return 1 / weft::sqrt(x); });
}
Tensor Tensor::log10() const {
  return of_real(*this, [](const Term& x) { return apply(Op::LOG2, x) * kLog10Of2; });
}
Tensor Tensor::expm1() const { return of_real(*this, weft::expm1); }
Tensor Tensor::log1p() const { return of_real(*this, weft::log1p); }
Tensor Tensor::tan() const { return of_real(*this, tan_of); }
Tensor Tensor::asin() const { return called<kAsin>(*this); }
Tensor Tensor::acos() const { return called<kAcos>(*this); }
Tensor Tensor::atan() const { return called<kAtan>(*this); }
Tensor Tensor::atan2(Operand x) const {
  return of_reals("atan2", *this, x,
                  [](const Term& a, const Term& b) { return call_like<kAtan2>(a, b); });
}
Tensor Tensor::sinh() const { return called<kSinh>(*this); }
Tensor Tensor::cosh() const { return called<kCosh>(*this); }
Tensor Tensor::tanh() const {
  return of_real(*this, [](const Term& x) { return weft::tanh(x); });
}
Tensor Tensor::asinh() const { return called<kAsinh>(*this); }
Tensor Tensor::acosh() const { return called<kAcosh>(*this); }
Tensor Tensor::atanh() const { return called<kAtanh>(*this); }
Tensor Tensor::erf() const {
  return of_real(*this, [](const Term& x) { return weft::erf(x); });
}

}  // namespace weft
