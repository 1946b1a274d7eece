// Functions made of exp and log, and of polynomials where these would cancel. The polynomials are
// minimax for the relative error.
#include <span>

#include "tensor/calls.h"
#include "tensor/term.h"

namespace weft {
namespace {

constexpr double kExpm1In32[] = {0x1p-1,         0x1.555558p-3,  0x1.55554cp-5, 0x1.110dcp-7,
                                 0x1.6c1c8cp-10, 0x1.a41906p-13, 0x1.9fd8f8p-16};
constexpr double kExpm1In64[] = {0x1p-1,
                                 0x1.5555555555555p-3,
                                 0x1.5555555555559p-5,
                                 0x1.11111111112b6p-7,
                                 0x1.6c16c16c160e6p-10,
                                 0x1.a01a019fa3084p-13,
                                 0x1.a01a01a1b9222p-16,
                                 0x1.71de3b4cb85fcp-19,
                                 0x1.27e4f9c138d56p-22,
                                 0x1.ae624f6a85cd3p-26,
                                 0x1.1eef058f0a21ap-29,
                                 0x1.633ba0e3622e2p-33,
                                 0x1.938a824c441a9p-37};
constexpr double kTanhIn32[] = {-0x1.555532p-2, 0x1.110726p-3, -0x1.b83c38p-5, 0x1.52255ap-6,
                                -0x1.75daep-8};
constexpr double kTanhIn64[] = {
    -0x1.55555555555p-2,    0x1.111111110ad32p-3,  -0x1.ba1ba1b50a676p-5,  0x1.664f477b8230fp-6,
    -0x1.226e163af0a54p-7,  0x1.d6cf29ad4d898p-9,  -0x1.7d68b12b03f5ap-10, 0x1.33665e1d05231p-11,
    -0x1.df575ed1c118ep-13, 0x1.43946dff9199cp-14, -0x1.0dabcc11c11fp-16};
constexpr double kErfIn32[] = {0x1.06eba8p-3, -0x1.81273ep-2,  0x1.ce2cf8p-4, -0x1.b7f91p-6,
                               0x1.5405bep-8, -0x1.a3f71ep-11, 0x1.496a12p-14};
constexpr double kErfIn64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379e6p-2,  0x1.ce2f21a042b21p-4,  -0x1.b82ce312849afp-6,
    0x1.565bcd0db053p-8,   -0x1.c02db3d8f264ep-11, 0x1.f9a321a195b9dp-14, -0x1.f4d1df40274b3p-17,
    0x1.b9def1de3f8ebp-20, -0x1.5f1d38354a7c9p-23, 0x1.f7a41b6768ef8p-27, -0x1.386acc14bb471p-30,
    0x1.0579a08899394p-34};
constexpr double kErfcIn32[] = {0x1.ddc16p-10,  0x1.09eef4p-2, 0x1.96533ap-2,
                                -0x1.0806fep-4, 0x1.45fac8p-1, -0x1.d8ae4ap-3};
constexpr double kErfcIn64[] = {
    -0x1.a38cc7b8b5044p-19, 0x1.20f60c3ce29d3p-2, 0x1.1f8e9b24bf346p-2,  0x1.077ae08aef4fdp-2,
    0x1.e5e1080f5076ap-4,   0x1.3c512683902a2p-2, -0x1.48d69aaafdffcp-1, 0x1.425e35568bdd5p+0,
    -0x1.feb9e7c2da9cep+0,  0x1.f1503482757cbp+0, -0x1.2036603eb902ep+0, 0x1.75f28ad7158d1p-2,
    -0x1.a8311d471a43bp-5};

std::span<const double> of_width(const Term& x, std::span<const double> for_32,
                                 std::span<const double> for_64) {
  return x.is_64() ? for_64 : for_32;
}

// x + x^2 p(x) around 0, exp(x) - 1 elsewhere.
Term expm1_of(const Term& x) {
  constexpr double near = 0.6;
  const Term is_near = (-near < x) & (x < near);
  const Term inside = where(is_near, x, 0.0);
  const Term tail = inside * inside * polynomial(inside, of_width(x, kExpm1In32, kExpm1In64));
  return where(is_near, where(x == 0, x, x + tail), exp(x) - 1);
}

// log(u) for u = 1 + x, and what rounding u has lost: log(1 + x) - log(u) = (x - (u - 1)) / u.
Term log1p_of(const Term& x) {
  constexpr double most = 0x1p60;
  const Term inside = at_most(x, most);
  const Term u = 1 + inside;
  const Term lost = (inside - (u - 1)) / where(u == 0, 1, u);
  return where(x == 0, x, log(1 + x) + lost);
}

// x + x^3 p(x^2) around 0, 1 - 2 / (exp(2 |x|) + 1) elsewhere.
Term tanh_of(const Term& x) {
  constexpr double near = 0.625, far = 22;  // past it the result is 1
  const Term is_negative = sign_bit(x), magnitude = negate(is_negative, x);
  const Term is_near = magnitude < near;
  const Term inside = where(is_near, magnitude, 0.0), square = inside * inside;
  const Term tail = square * polynomial(square, of_width(x, kTanhIn32, kTanhIn64));
  const Term outside = 1 - 2 / (exp(2 * at_most(magnitude, far)) + 1);
  return negate(is_negative, where(is_near, inside + inside * tail, outside));
}

// x + x p(x^2) around 0, 1 - exp(-x^2) q(1 / (1 + |x| / 2)) elsewhere.
Term erf_of(const Term& x) {
  constexpr double near = 1;
  const double far = x.is_64() ? 6 : 4;  // past it the result is 1
  const Term is_negative = sign_bit(x), magnitude = negate(is_negative, x);
  const Term is_near = magnitude < near;
  const Term inside = where(is_near, magnitude, 0.0);
  const Term tail = polynomial(inside * inside, of_width(x, kErfIn32, kErfIn64));
  const Term between = at_most(at_least(magnitude, near), far);
  const Term t = 1 / (1 + between * 0.5);
  const Term rest = exp(-(between * between)) * polynomial(t, of_width(x, kErfcIn32, kErfcIn64));
  return negate(is_negative, where(is_near, inside + inside * tail, 1 - rest));
}

// The exponential is finite where a gradient reads it.
Term sigmoid_of(const Term& x) {
  const double least = x.is_64() ? -708 : -87;
  return where(x < least, 0.0, 1 / (1 + exp(-at_least(x, least))));
}

// max(x, y) + log(1 + exp(-|x - y|)). Infinities are bounded for the difference.
Term logaddexp_of(const Term& x, const Term& y) {
  const double most = x.is_64() ? 0x1p1000 : 0x1p120;
  const Term is_less = x < y;
  const Term difference = at_least(at_most(x, most), -most) - at_least(at_most(y, most), -most);
  const Term smaller = exp(negate(!is_less, difference));
  const Term u = 1 + smaller;
  const Term larger = where(is_less | is_nan(y), y, x);
  return larger + (log(u) + (smaller - (u - 1)) / u);
}

Term softplus_of(const Term& x) {
  const Term is_negative = x < 0;
  const Term smaller = exp(negate(!is_negative, x));
  const Term u = 1 + smaller;
  return where(is_negative, 0.0, x) + (log(u) + (smaller - (u - 1)) / u);
}

constexpr auto kExpm1 = row<expm1_of>("expm1");
constexpr auto kLog1p = row<log1p_of>("log1p");
constexpr auto kTanh = row<tanh_of>("tanh");
constexpr auto kErf = row<erf_of>("erf");
constexpr auto kSigmoid = row<sigmoid_of>("sigmoid");
constexpr auto kLogaddexp = row<logaddexp_of>("logaddexp");
constexpr auto kSoftplus = row<softplus_of>("softplus");

}  // namespace

Term expm1(const Term& x) { return call_like<kExpm1>(x); }
Term log1p(const Term& x) { return call_like<kLog1p>(x); }
Term tanh(const Term& x) { return call_like<kTanh>(x); }
Term erf(const Term& x) { return call_like<kErf>(x); }
Term sigmoid(const Term& x) { return call_like<kSigmoid>(x); }
Term logaddexp(const Term& x, const Term& y) { return call_like<kLogaddexp>(x, y); }
Term softplus(const Term& x) { return call_like<kSoftplus>(x); }

}  // namespace weft
