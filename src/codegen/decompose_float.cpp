// RECIP, NEG, rounding to integers, MAX, MIN and MULACC of floats, in plain arithmetic.
#include <cmath>
#include <cstdint>
#include <span>

#include "codegen/decompose_rules.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {
namespace {
using namespace names;

UOp reciprocal(Match& m) { return number(m[x], 1) / m[x]; }

UOp negated(Match& m) {
  const UOp bits = bitcast(m[x], signed_of(m[x].dtype()));
  return bitcast(bit_xor(bits, bits_like(bits, uint64_t(1) << (m[x].dtype().bits() - 1))),
                 m[x].dtype());
}

// --------------------------------------------------------------------------------------- rounding

// From here on all floats are integers.
double first_whole(UOp x) { return x.dtype().scalar == Scalar::kFloat32 ? 0x1p23 : 0x1p52; }

UOp size_of(UOp x) { return bitcast(magnitude(x), x.dtype()); }

// |x| to the nearest integer, halves to even; valid below first_whole.
UOp nearest_size(UOp size) {
  const UOp large = number(size, first_whole(size));
  return (size + large) - large;
}

// `whole` with the sign of x, which zeros need; large numbers, infinities and NaN are themselves.
UOp unless_whole(UOp x, UOp size, UOp whole) {
  return where(size < number(x, first_whole(x)), with_sign(whole, x), x);
}

UOp rounded(Match& m) {
  const UOp size = size_of(m[x]);
  return unless_whole(m[x], size, nearest_size(size));
}

UOp truncated(Match& m) {
  const UOp size = size_of(m[x]), near = nearest_size(size);
  const UOp whole = where(size < near, near - number(near, 1), near);
  return unless_whole(m[x], size, whole);
}

// From the nearest integer, one step where that is on the wrong side.
UOp floored(Match& m) {
  const UOp in = m[x], size = size_of(in), near = with_sign(nearest_size(size), in);
  const UOp whole = where(in < near, near - number(in, 1), near);
  return unless_whole(in, size, whole);
}

UOp ceiled(Match& m) {
  const UOp in = m[x], size = size_of(in), near = with_sign(nearest_size(size), in);
  const UOp whole = where(near < in, near + number(in, 1), near);
  return unless_whole(in, size, whole);
}

// ------------------------------------------------------------------------------------ max and min

// With a constant c one comparison does it: NaN in x fails the comparison and stays. Against a zero
// that beats the other zero, x is compared with the number next to it.
UOp larger_than_constant(UOp in, UOp c, Op function) {
  const double value = double_of_bits(c.dtype(), c.bits());
  const bool is_max = function == Op::MAX;
  UOp limit = c;
  if (value == 0 && std::signbit(value) != is_max) {
    const uint64_t sign = is_max ? 0 : uint64_t(1) << (c.dtype().bits() - 1);
    limit = bits_like(c, sign | 1);
  }
  return is_max ? where(in < limit, c, in) : where(limit < in, c, in);
}

bool is_number(UOp c) { return c.is_const() && !std::isnan(double_of_bits(c.dtype(), c.bits())); }

UOp larger(Match& m) {
  const UOp a = m.root().src(0), b = m.root().src(1);
  const bool is_max = m.root().is(Op::MAX);
  if (is_number(b)) return larger_than_constant(a, b, m.root().op());
  if (is_number(a)) return larger_than_constant(b, a, m.root().op());
  // Equal numbers differ at most in the sign of zero: and, or of their bits chooses it.
  const DType ints = signed_of(a.dtype());
  const UOp bits_a = bitcast(a, ints), bits_b = bitcast(b, ints);
  const UOp same = bitcast(is_max ? bits_a & bits_b : bits_a | bits_b, a.dtype());
  const UOp other = where(equal(a, b), same, where(not_equal(b, b), b, a));
  return where(is_max ? a < b : b < a, b, other);
}

// ----------------------------------------------------------------------------------------- mulacc

// x * y + z in float64, rounded so that rounding it again to a format of at most 24 bits is the
// only rounding that counts: what is lost sets the last bit.
UOp sum_to_odd(UOp product, UOp z) {
  const UOp sum = product + z, other = sum - product;
  const UOp error = (product - (sum - other)) + (z - other);
  const UOp zero = number(sum, 0);
  const UOp is_above = zero < error, is_below = error < zero;  // neither on NaN
  const UOp bits = bitcast(sum, signed_of(sum.dtype()));
  const UOp one = bits_like(bits, 1), minus_one = bits_like(bits, ~uint64_t(0));
  const UOp is_even = equal(bits & one, bits_like(bits, 0));
  const UOp grows = equal(sum < zero, is_below);
  const UOp step =
      where((is_above | is_below) & is_even, where(grows, one, minus_one), bits_like(bits, 0));
  return bitcast(bits + step, sum.dtype());
}

UOp multiply_accumulate(Match& m) {
  const DType wide = like(m[x].dtype(), dtypes::float64);
  const UOp product = cast(m[x], wide) * cast(m[y], wide);  // exact
  return cast(sum_to_odd(product, cast(m[z], wide)), m.root().dtype());
}

bool is_missing_with_float64(const Match& m) {
  return is_missing(m) && m.context<Decomposition>().has_float64();
}

// clang-format off
constexpr Rule kRules[] = {
    rule("recip",  op(Op::RECIP, x), reciprocal).when(is_missing),
    rule("neg",    op(Op::NEG, x),   negated   ).when(is_missing),
    rule("round",  op(Op::ROUND, x), rounded   ).when(is_missing),
    rule("trunc",  op(Op::TRUNC, x), truncated ).when(is_missing),
    rule("floor",  op(Op::FLOOR, x), floored   ).when(is_missing),
    rule("ceil",   op(Op::CEIL, x),  ceiled    ).when(is_missing),
    rule("max",    op(Op::MAX, x, y), larger   ).when(is_missing),
    rule("min",    op(Op::MIN, x, y), larger   ).when(is_missing),
};
constexpr Rule kMulaccRules[] = {
    rule("mulacc", op(Op::MULACC, x, y, z), multiply_accumulate).when(is_missing_with_float64),
};
// clang-format on

constexpr RuleTable kTables[] = {
    {"float", kWideFloats, kRules},
    {"float-mulacc", kNarrowFloats | set_of(Scalar::kFloat32), kMulaccRules},
};

}  // namespace

std::span<const RuleTable> float_tables() { return kTables; }

}  // namespace weft
