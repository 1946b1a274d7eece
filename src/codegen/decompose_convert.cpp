// CAST from and to narrow floats (float16, bfloat16, fp8), by their bits.
//
// Down: one rounding to nearest even from the bits of float32 or float64. Numbers that are
// subnormal in the narrow format are rounded by adding a number whose last place is theirs. Up: the
// bits moved to their place and the exponent corrected by a multiplication, which is exact.
// Integers go through a float that holds them, or all of them that rounding can tell apart.
#include <cstddef>
#include <cstdint>
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

struct Format {
  DType dtype;
  int exponent_bits, mantissa_bits;
  bool has_infinity;  // else the largest exponent holds numbers, and all ones is NaN

  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint64_t mantissa_ones() const { return (uint64_t(1) << mantissa_bits) - 1; }
  uint64_t exponent_ones() const { return ((uint64_t(1) << exponent_bits) - 1) << mantissa_bits; }
  uint64_t largest() const {  // magnitude: infinity, or the NaN that takes its place
    return has_infinity ? exponent_ones() : exponent_ones() | mantissa_ones();
  }
  uint64_t quiet() const { return uint64_t(1) << (mantissa_bits - 1); }
  uint64_t power_of_two(int e) const { return uint64_t(e + bias()) << mantissa_bits; }
};

constexpr Format kFormats[] = {
    {dtypes::float8_e4m3, 4, 3, false}, {dtypes::float8_e5m2, 5, 2, true},
    {dtypes::float16, 5, 10, true},     {dtypes::bfloat16, 8, 7, true},
    {dtypes::float32, 8, 23, true},     {dtypes::float64, 11, 52, true},
};

const Format& format_of(DType type) {
  return kFormats[size_t(type.scalar) - size_t(Scalar::kFloat8E4M3)];
}

// ------------------------------------------------------------------------------------------- down

// The magnitude of x rounded to `to`, as bits of `to` in the integers of `from`.
UOp rounded_magnitude(UOp size, const Format& from, const Format& to, DType float_type) {
  const int shift = from.mantissa_bits - to.mantissa_bits;
  const uint64_t half = uint64_t(1) << (shift - 1);
  const uint64_t rebias = uint64_t(from.bias() - to.bias()) << from.mantissa_bits;
  const UOp based = rebias == 0 ? size : size - bits_like(size, rebias);
  const UOp is_odd = shift_right(based, shift) & bits_like(size, 1);
  const UOp normal = shift_right(based + bits_like(size, half - 1) + is_odd, shift);
  if (rebias == 0) return normal;
  // 2^e + x has the last place of the subnormals of `to`
  const int e = 1 - to.bias() - to.mantissa_bits + from.mantissa_bits;
  const UOp base = bits_like(size, from.power_of_two(e));
  const UOp sum = bitcast(size, float_type) + bitcast(base, float_type);
  const UOp subnormal = bitcast(sum, size.dtype()) - base;
  const UOp is_subnormal = size < bits_like(size, from.power_of_two(1 - to.bias()));
  const UOp any = where(is_subnormal, subnormal, normal);
  const UOp most = bits_like(size, to.largest());
  return where(most < any, most, any);
}

UOp narrowed(UOp x, DType type) {
  const Format &from = format_of(x.dtype()), &to = format_of(type);
  const UOp bits = bitcast(x, unsigned_of(x.dtype()));
  const UOp size = bits & bits_like(bits, (uint64_t(1) << (from.bits() - 1)) - 1);
  const UOp value = rounded_magnitude(size, from, to, x.dtype());
  UOp nan = bits_like(bits, to.largest());
  if (to.has_infinity) {
    const UOp payload = shift_right(size, from.mantissa_bits - to.mantissa_bits) &
                        bits_like(bits, to.mantissa_ones());
    nan = payload | bits_like(bits, to.exponent_ones() | to.quiet());
  }
  const UOp sign = shift_left(shift_right(bits, from.bits() - 1), to.bits() - 1);
  const UOp all = where(not_equal(x, x), nan, value) | sign;
  return bitcast(cast(all, like(type, unsigned_of_bits(to.bits()))), type);
}

// --------------------------------------------------------------------------------------------- up

enum class Nans : uint8_t { kAny, kAsCast };  // which payload they have afterwards

UOp raised(UOp x, DType type, Nans nans) {
  const Format &from = format_of(x.dtype()), &to = format_of(type);
  const int shift = to.mantissa_bits - from.mantissa_bits;
  const DType ints = unsigned_of(type);
  const UOp all = cast(bitcast(x, unsigned_of(x.dtype())), ints);
  // CAST to float64 keeps a NaN as it is, to float32 makes it quiet.
  const bool quiets = nans == Nans::kAsCast && to.dtype == dtypes::float32;
  if (from.bias() == to.bias()) {
    const UOp bits = shift_left(all, shift), value = bitcast(bits, type);
    if (!quiets) return value;
    const UOp quiet = bitcast(bits | bits_like(bits, to.quiet()), type);
    return where(not_equal(value, value), quiet, value);
  }
  const UOp size = all & bits_like(all, (uint64_t(1) << (from.bits() - 1)) - 1);
  const UOp sign = shift_left(shift_right(all, from.bits() - 1), to.bits() - 1);
  const UOp placed = shift_left(size, shift);
  const UOp scale = bits_like(all, to.power_of_two(to.bias() - from.bias()));
  const UOp value = bitcast(bitcast(placed, type) * bitcast(scale, type), ints);
  UOp special = bits_like(all, to.exponent_ones() | to.quiet());
  if (from.has_infinity) {
    special = placed | bits_like(all, to.exponent_ones());
    const UOp is_nan = bits_like(all, from.largest()) < size;
    if (quiets) special = where(is_nan, special | bits_like(all, to.quiet()), special);
  }
  const UOp is_special = bits_like(all, from.largest() - 1) < size;
  return bitcast(where(is_special, special, value) | sign, type);
}

// --------------------------------------------------------------------------------------- integers

// A 64-bit integer with at most 53 bits, its last one set if anything was lost: rounding that to
// fewer bits is rounding the integer.
UOp with_sticky_bit(UOp x) {
  const DType type = unsigned_of(x.dtype());
  const UOp bits = bitcast(x, type);
  const bool is_signed = x.dtype().is_signed();
  const uint64_t exact = uint64_t(1) << 53;
  const UOp is_exact = is_signed ? bits + bits_like(bits, exact) < bits_like(bits, 2 * exact)
                                 : bits < bits_like(bits, exact);
  const UOp lost = not_equal(bits & bits_like(bits, 0x7ff), bits_like(bits, 0));
  const UOp kept = bits & bits_like(bits, ~uint64_t(0x7ff));
  const UOp sticky = kept | where(lost, bits_like(bits, 0x800), bits_like(bits, 0));
  return bitcast(where(is_exact, bits, sticky), x.dtype());
}

UOp from_integer(UOp x, DType type) {
  const int bits = x.dtype().bits();
  if (bits <= 16) return cast(cast(x, like(type, dtypes::float32)), type);
  const UOp held = bits == 64 ? with_sticky_bit(x) : x;
  return cast(cast(held, like(type, dtypes::float64)), type);
}

// ------------------------------------------------------------------------------------------ rules

bool is_missing_cast(const Match& m) {
  const DType from = m[x].dtype(), to = m.root().dtype();
  if (from.is_pointer() || from.is_index() || to.is_index()) return false;
  return !m.context<Decomposition>().can_cast(from, to);
}

UOp from_narrow(Match& m) {
  const UOp in = m[x];
  const DType to = m.root().dtype(), middle = like(to, dtypes::float32);
  if (to.is_bool()) {
    const UOp bits = bitcast(in, unsigned_of(in.dtype()));
    const uint64_t size = (uint64_t(1) << (in.dtype().bits() - 1)) - 1;
    return not_equal(bits & bits_like(bits, size), bits_like(bits, 0));
  }
  if (to == middle || to.scalar == Scalar::kFloat64) return raised(in, to, Nans::kAsCast);
  return cast(cast(in, middle), to);
}

UOp to_narrow(Match& m) {
  const UOp in = m[x];
  const DType from = in.dtype(), to = m.root().dtype();
  if (!is_narrow_float(to)) return {};
  if (from.is_float()) return narrowed(in, to);
  if (!from.is_bool()) return from_integer(in, to);
  const Format& f = format_of(to);
  return where(in, constant_bits(m.arena(), to, f.power_of_two(0)),
               constant_bits(m.arena(), to, 0));
}

// clang-format off
constexpr Rule kFromRules[] = {
    rule("cast-from-narrow", op(Op::CAST, x), from_narrow).when(is_missing_cast),
};
constexpr Rule kToRules[] = {
    rule("cast-to-narrow",   op(Op::CAST, x), to_narrow  ).when(is_missing_cast),
};
// clang-format on

constexpr RuleTable kTables[] = {
    {"from-narrow", kNarrowFloats, kFromRules},
    {"to-narrow", kWideFloats | kMachineInts | kBools, kToRules},
};

}  // namespace

UOp widened(const Decomposition& d, UOp narrow) {
  const DType type = like(narrow.dtype(), dtypes::float32);
  return d.can_cast(narrow.dtype(), type) ? cast(narrow, type) : raised(narrow, type, Nans::kAny);
}

std::span<const RuleTable> conversion_tables() { return kTables; }

}  // namespace weft
