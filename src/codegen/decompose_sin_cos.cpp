// SIN and COS of float32 and float64.
//
//   sin x = (-1)^n sin r       n = round(x / pi),          r = x - n pi
//   cos x = -(-1)^n sin r      n = round(x / pi - 1/2),    r = x - (n + 1/2) pi
//
// with |r| <= pi / 2 and sin r = r + r^3 P(r^2). Up to a limit, pi in three parts (four without a
// fused multiply-add) gives r to its last places. Beyond it, x / 2 pi is multiplied out in integers
// (codegen/decompose_turns.cpp), behind a gate: vectors without a large lane skip that.
#include <cstdint>
#include <span>

#include "codegen/decompose_rules.h"
#include "codegen/decompose_turns.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {
namespace {
using namespace names;

constexpr double kPi = 0x1.921fb54442d18p+1, kInversePi = 0x1.45f306dc9c883p-2;
constexpr double kPiIn32 = 0x1.921fb6p+1;

// P, minimax for the relative error on [0, pi/2].
constexpr double kSine32[] = {-0x1.55554cp-3, 0x1.110edap-7, -0x1.9f70e2p-13, 0x1.5dc74ep-19};
constexpr double kSine64[] = {
    -0x1.5555555555555p-3,  0x1.11111111110c0p-7,  -0x1.a01a01a01482ep-13, 0x1.71de3a5283e22p-19,
    -0x1.ae6454c985a1ap-26, 0x1.6123cab1ad055p-33, -0x1.ae42fdf2f2dbbp-41, 0x1.88263e519e96ap-49};

// pi in parts: the products of all but the last with n are exact, within a fused multiply-add or
// in the 30 bits that each part has. None is negative: r of -0 is -0.
constexpr double kFusedPi32[] = {0x1.921fb4p+1, 0x1.4442dp-23, 0x1.846988p-47};
constexpr double kFusedPi64[] = {0x1.921fb54442d18p+1, 0x1.1a62633145c06p-53,
                                 0x1.c1cd129024e08p-106};
constexpr double kPartsOfPi[] = {0x1.921fb54p+1, 0x1.10b46118p-29, 0x1.313198ap-60,
                                 0x1.701b839a25205p-91};

// Arguments above are large: the bits of 2^17 and of 2^22.
constexpr uint64_t kLimit32 = 0x48000000, kLimit64 = 0x4150000000000000;

bool is_float32(DType type) { return type.scalar == Scalar::kFloat32; }

// sin r as `type`, negated where the last bit of n is set; r may be wider. The first term of P,
// which counts most, is rounded once with the sum of the others; r = -0 gives -0.
UOp sine_of(const Decomposition& d, UOp r, UOp n, DType type) {
  const auto p = is_float32(type) ? std::span<const double>(kSine32) : kSine64;
  const UOp square = r * r;
  const UOp others = square * square * horner(d, square, p.subspan(1));
  const UOp factor = multiply_add(d, square, number(r, p[0]), others);
  const UOp bits = bitcast(cast(multiply_add(d, r, factor, r), type), signed_of(type));
  return bitcast(bit_xor(bits, shift_left(cast(n, bits.dtype()), type.bits() - 1)), type);
}

struct Reduced {
  UOp r, n;  // n an integer whose last bit counts
};

// In the dtype of x, of which `rounder` has a last place of 1.
Reduced reduce(const Decomposition& d, UOp x, Op function, double rounder,
               std::span<const double> parts_of_pi) {
  const UOp shift = number(x, rounder), inverse = number(x, kInversePi);
  UOp shifted, turns;  // turns: what r leaves of x / pi
  if (function == Op::SIN) {
    shifted = multiply_add(d, x, inverse, shift);
    turns = shifted - shift;
  } else {
    shifted = multiply_add(d, x, inverse, number(x, -0.5)) + shift;
    turns = (shifted - shift) + number(x, 0.5);
  }
  UOp r = x;
  for (const double part : parts_of_pi) r = multiply_add_once(d, turns, number(x, -part), r);
  const UOp n = bitcast(shifted, signed_of(x.dtype()));
  return {r, function == Op::SIN ? n : n + bits_like(n, 1)};
}

// float32 without a fused multiply-add in float64, where there is that.
UOp of_small(const Decomposition& d, UOp x, Op function) {
  const DType type = x.dtype(), wide = like(type, dtypes::float64);
  const bool fused = d.can(Op::MULACC, type) || (is_float32(type) && !d.has_float64());
  if (is_float32(type) && fused) {
    const Reduced a = reduce(d, x, function, 0x1.8p+23, kFusedPi32);
    return sine_of(d, a.r, a.n, type);
  }
  const auto parts_of_pi = fused ? std::span<const double>(kFusedPi64) : kPartsOfPi;
  const Reduced a = reduce(d, cast(x, wide), function, 0x1.8p+52, parts_of_pi);
  return sine_of(d, a.r, a.n, type);
}

// Infinities give NaN.
UOp of_large(const Decomposition& d, UOp x, Op function) {
  const Turns turns = is_float32(x.dtype()) ? turns32(x) : turns64(x);
  const Turns from = function == Op::SIN ? turns : quarter_turn_on(turns);
  if (is_float32(x.dtype()) && !d.has_float64()) {
    const auto [high, low] = half_turn_in_float32(from);
    const UOp pi = number(x, kPi);
    const UOp rest = multiply_add_once(d, low, pi, high * number(x, kPi - kPiIn32));
    const UOp r = multiply_add_once(d, high, pi, rest) + (x - x);
    return sine_of(d, r, half_turns(from), x.dtype());
  }
  const UOp f = half_turn(from);
  const UOp r = f * number(f, kPi) + cast(x - x, f.dtype());
  return sine_of(d, r, half_turns(from), x.dtype());
}

UOp sine(Match& m) {
  auto& d = m.context<Decomposition>();
  const UOp in = m[x];
  const Op function = m.root().op();
  const UOp size = magnitude(in);
  const UOp is_large = bits_like(size, is_float32(in.dtype()) ? kLimit32 : kLimit64) < size;
  return unless(d, of_small(d, in, function), is_large, of_large(d, in, function));
}

// clang-format off
constexpr Rule kRules[] = {
    rule("sin", op(Op::SIN, x), sine).when(is_missing),
    rule("cos", op(Op::COS, x), sine).when(is_missing),
};
// clang-format on

constexpr RuleTable kTables[] = {{"sin-cos", kWideFloats, kRules}};

}  // namespace

std::span<const RuleTable> sin_cos_tables() { return kTables; }

}  // namespace weft
