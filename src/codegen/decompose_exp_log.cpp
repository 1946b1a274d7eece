// EXP, EXP2, LOG and LOG2 of float32 and float64, without branches.
//
//   exp x  = 2^n exp r     n = round(x / ln 2), r = x - n ln 2 in two parts, |r| <= ln(2) / 2
//   exp2 x = 2^n 2^r       n = round(x), r = x - n exactly
//   log x  = e ln 2 + log(1 + f)    x = 2^e (1 + f)
//
// Rounding to an integer is the addition of a number so large that its last place is 1. 2^n is two
// factors, each a normal number, so that results that overflow or are subnormal round once.
#include <cstdint>
#include <limits>
#include <span>

#include "codegen/decompose_rules.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {
namespace {
using namespace names;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLog2E = 0x1.71547652b82fep+0;

// ------------------------------------------------------------------------------------- exp and
// exp2

// What depends on the format. The polynomials are minimax for the relative error.
struct ExpFormat {
  int mantissa_bits;
  double rounder;                // 1.5 * 2^mantissa_bits, plus twice the bias of the exponent
  double least, most;            // exp overflows or vanishes beyond
  double least2, most2;          // likewise exp2
  double ln2_high, ln2_low;      // n * ln2_high is exact
  std::span<const double> exp;   // exp(r) = 1 + r + r^2 (c0 + c1 r + ...)
  std::span<const double> exp2;  // 2^r = 1 + r (c0 + c1 r + ...)
};

constexpr double kExp32[] = {0x1.fffffcp-2, 0x1.555482p-3, 0x1.555826p-5, 0x1.1244d2p-7,
                             0x1.6b03b4p-10};
constexpr double kExp2In32[] = {0x1.62e432p-1, 0x1.ebfbe6p-3,  0x1.c6ada8p-5,
                                0x1.3b217cp-7, 0x1.5fc138p-10, 0x1.4be73ap-13};
constexpr double kExp64[] = {0x1.0000000000008p-1,  0x1.55555555554ffp-3,  0x1.5555555550f48p-5,
                             0x1.11111111272f0p-7,  0x1.6c16c182ecfdfp-10, 0x1.a01a012ac1e20p-13,
                             0x1.a0199ceff6c98p-16, 0x1.71df288a51d1cp-19, 0x1.28ab1ada864a7p-22,
                             0x1.ad758bfb54cfdp-26};
constexpr double kExp2In64[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c5a3p-3,  0x1.c6b08d7049ff2p-5,
                                0x1.3b2ab6fba0349p-7,  0x1.5d87fe78cc74ep-10, 0x1.4309130e7f13ep-13,
                                0x1.ffcbfbabb6e11p-17, 0x1.62bfc856abe97p-20, 0x1.b5267b371369dp-24,
                                0x1.e61a453b03e36p-28, 0x1.e79b8e4753695p-32};

constexpr ExpFormat kExpFormat32 = {23,  0x1.8p+23 + 254, -104,           89,     -151,
                                    129, 0x1.62e4p-1,     0x1.7f7d1cp-20, kExp32, kExp2In32};
constexpr ExpFormat kExpFormat64 = {
    52,     0x1.8p+52 + 2046, -746, 710, -1076, 1025, 0x1.62e42fefa2000p-1, 0x1.9ef35793c7673p-41,
    kExp64, kExp2In64};

const ExpFormat& exp_format(UOp x) {
  return x.dtype().scalar == Scalar::kFloat32 ? kExpFormat32 : kExpFormat64;
}

// Between two numbers; NaN stays.
UOp clamped(UOp x, double least, double most) {
  const UOp low = number(x, least), high = number(x, most);
  const UOp from_below = where(x < low, low, x);
  return where(high < from_below, high, from_below);
}

// y * 2^n, where `shifted` is n + rounder.
UOp scaled(const ExpFormat& f, UOp y, UOp shifted) {
  const UOp bits = bitcast(shifted, signed_of(y.dtype()));
  const UOp half = shift_right(bits, 1);
  const UOp first = bitcast(shift_left(half, f.mantissa_bits), y.dtype());
  const UOp second = bitcast(shift_left(bits - half, f.mantissa_bits), y.dtype());
  return y * first * second;
}

UOp exp_of(Match& m) {
  const auto& d = m.context<Decomposition>();
  const ExpFormat& f = exp_format(m[x]);
  const UOp in = clamped(m[x], f.least, f.most);
  const UOp rounder = number(in, f.rounder);
  const UOp shifted = multiply_add(d, in, number(in, kLog2E), rounder);
  const UOp n = shifted - rounder;
  UOp r = multiply_add(d, n, number(in, -f.ln2_high), in);
  r = multiply_add(d, n, number(in, -f.ln2_low), r);
  const UOp tail = horner(d, r, f.exp) * (r * r);
  return scaled(f, number(in, 1) + (r + tail), shifted);
}

UOp exp2_of(Match& m) {
  const auto& d = m.context<Decomposition>();
  const ExpFormat& f = exp_format(m[x]);
  const UOp in = clamped(m[x], f.least2, f.most2);
  const UOp rounder = number(in, f.rounder);
  const UOp shifted = in + rounder;
  const UOp r = in - (shifted - rounder);
  return scaled(f, multiply_add(d, horner(d, r, f.exp2), r, number(in, 1)), shifted);
}

// -------------------------------------------------------------------------------------- log and
// log2

// x = 2^e (1 + f)
struct Parts {
  UOp e, f;
};

// 1 + f from `low` to twice that; `low` as the bits of its dtype.
Parts split(UOp x, int mantissa_bits, double least_normal, uint64_t low) {
  const double up = double(uint64_t(1) << mantissa_bits);
  const UOp is_subnormal = x < number(x, least_normal);
  const UOp bits = bitcast(where(is_subnormal, x * number(x, up), x), signed_of(x.dtype()));
  const UOp from_low = bits - bits_like(bits, low);
  const UOp e = shift_right(from_low, mantissa_bits);
  const UOp correction = where(is_subnormal, number(x, -mantissa_bits), number(x, 0));
  const UOp scaled_down = bitcast(bits - shift_left(e, mantissa_bits), x.dtype());
  return {cast(e, x.dtype()) + correction, scaled_down - number(x, 1)};
}

// What the formulas do not give: log 0 = -inf, log inf = inf, NaN for the negative and for NaN.
UOp with_special_values(UOp x, UOp log) {
  const UOp zero = number(x, 0);
  const UOp outside = where(equal(x, zero), number(x, -kInfinity),
                            number(x, std::numeric_limits<double>::quiet_NaN()));
  return where(zero < x, where(x < number(x, kInfinity), log, x), outside);
}

Parts split32(UOp x) { return split(x, 23, 0x1p-126, 0x3f2aaaab); }           // from 2/3
Parts split64(UOp x) { return split(x, 52, 0x1p-1022, 0x3fe6a09e667f3bcd); }  // from sqrt(1/2)

// log(1 + f) = f + f^2 (-1/2 + f (c0 + c1 f + ...))
constexpr double kLog32[] = {0x1.555514p-2, -0x1.fffe70p-3, 0x1.99cb8ap-3, -0x1.55b5a8p-3,
                             0x1.1f153ap-3, -0x1.f06826p-4, 0x1.1d65bcp-3, -0x1.0de8p-3};

UOp log32(Match& m) {
  const auto& d = m.context<Decomposition>();
  const auto [e, f] = split32(m[x]);
  const UOp inner = multiply_add(d, horner(d, f, kLog32), f, number(f, -0.5));
  const UOp low = multiply_add(d, e, number(e, kExpFormat32.ln2_low), f * f * inner);
  return with_special_values(m[x], multiply_add(d, e, number(e, kExpFormat32.ln2_high), f + low));
}

// log2(1 + f) = f log2(e) + f^2 (c0 + c1 f + ...)
constexpr double kLog2In32[] = {-0x1.715478p-1, 0x1.ec702ap-2,  -0x1.7152acp-2,
                                0x1.279ecep-2,  -0x1.ed1aacp-3, 0x1.9dba8ap-3,
                                -0x1.64ef2ap-3, 0x1.9db1d6p-3,  -0x1.893360p-3};

UOp log2_32(Match& m) {
  const auto& d = m.context<Decomposition>();
  const auto [e, f] = split32(m[x]);
  const UOp square = f * f;
  const UOp low = multiply_add(d, f, number(f, 0x1.4ae0c0p-26), square * horner(d, f, kLog2In32));
  return with_special_values(m[x], e + multiply_add_once(d, f, number(f, 0x1.715476p+0), low));
}

// With s = f / (2 + f), z = s^2:   log(1 + f) = 2 s + s R(z)
//                                             = f - (f^2/2 - s (f^2/2 + R(z)))
constexpr double kLog64[] = {0x1.5555555555581p-1, 0x1.999999998445bp-2, 0x1.2492493eb0014p-2,
                             0x1.c71c5452d2748p-3, 0x1.7465d48faaae4p-3, 0x1.39ab5fc14c101p-3,
                             0x1.2eacec7e9a2d4p-3};

struct LogTail {
  UOp half_square, rest;  // log(1 + f) = f - half_square + rest
};
LogTail log_tail(const Decomposition& d, UOp f) {
  const UOp s = f / (f + number(f, 2));
  const UOp z = s * s;
  const UOp half_square = number(f, 0.5) * f * f;
  return {half_square, s * (half_square + z * horner(d, z, kLog64))};
}

UOp log64(Match& m) {
  const auto& d = m.context<Decomposition>();
  const auto [e, f] = split64(m[x]);
  const LogTail tail = log_tail(d, f);
  const UOp low = multiply_add(d, e, number(e, kExpFormat64.ln2_low), tail.rest);
  const UOp high = e * number(e, kExpFormat64.ln2_high);  // exact
  return with_special_values(m[x], high - ((tail.half_square - low) - f));
}

// log2(e) in two parts, the first with so few bits that its product with half a mantissa is exact.
constexpr double kLog2EHigh = 0x1.71547652p+0, kLog2ELow = 0x1.705fc2eefa2p-33;

UOp log2_64(Match& m) {
  const auto& d = m.context<Decomposition>();
  const auto [e, f] = split64(m[x]);
  const LogTail tail = log_tail(d, f);
  const DType bits = signed_of(f.dtype());
  const UOp rough = bitcast(f - tail.half_square, bits);
  const UOp high = bitcast(rough & bits_like(rough, ~uint64_t(0xffffffff)), f.dtype());
  const UOp low = (f - high) - tail.half_square + tail.rest;
  const UOp product = high * number(f, kLog2EHigh);
  const UOp small = (low + high) * number(f, kLog2ELow) + low * number(f, kLog2EHigh);
  const UOp sum = e + product;
  return with_special_values(m[x], sum + (((e - sum) + product) + small));
}

// clang-format off
constexpr Rule kExpRules[] = {
    rule("exp",      op(Op::EXP, x),                                 exp_of ).when(is_missing),
    rule("exp2",     op(Op::EXP2, x),                                exp2_of).when(is_missing),
};
constexpr Rule kLogRules32[] = {
    rule("log-32",   op(Op::LOG, x),                                 log32  ).when(is_missing),
    rule("log2-32",  op(Op::LOG2, x),                                log2_32).when(is_missing),
};
constexpr Rule kLogRules64[] = {
    rule("log-64",   op(Op::LOG, x),                                 log64  ).when(is_missing),
    rule("log2-64",  op(Op::LOG2, x),                                log2_64).when(is_missing),
};
// clang-format on

constexpr RuleTable kTables[] = {
    {"exp", kWideFloats, kExpRules},
    {"log-float32", set_of(Scalar::kFloat32), kLogRules32},
    {"log-float64", set_of(Scalar::kFloat64), kLogRules64},
};

}  // namespace

std::span<const RuleTable> exp_log_tables() { return kTables; }

}  // namespace weft
