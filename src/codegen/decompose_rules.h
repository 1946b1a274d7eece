// What the rule tables of decompose share: their context, and short names to build with.
#pragma once

#include <cstdint>
#include <span>

#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {

std::span<const RuleTable> narrow_float_tables();  // arithmetic in float32 for those without
std::span<const RuleTable> conversion_tables();    // CAST from and to narrow floats
std::span<const RuleTable> exp_log_tables();
std::span<const RuleTable> sin_cos_tables();
std::span<const RuleTable> float_tables();    // RECIP, rounding, MAX and MIN, NEG, MULACC
std::span<const RuleTable> integer_tables();  // what bool and integers need
std::span<const RuleTable> division_tables();
std::span<const RuleTable> random_tables();

inline constexpr DTypeSet kNarrowFloats = set_of(Scalar::kFloat8E4M3) |
                                          set_of(Scalar::kFloat8E5M2) | set_of(Scalar::kFloat16) |
                                          set_of(Scalar::kBFloat16);
inline constexpr DTypeSet kWideFloats = set_of(Scalar::kFloat32) | set_of(Scalar::kFloat64);

// The context of the rules.
struct Decomposition {
  const Target& target;
  int64_t next_register;  // an id that no register of the kernel has

  bool can(Op op, DType type) const { return target.can(op, type); }
  bool has_float64() const { return can(Op::MUL, dtypes::float64); }
  bool can_cast(DType from, DType to) const {
    return target.can(Op::CAST, from) && target.can(Op::CAST, to);
  }
};

// The condition of most rules: the target does not do the op on this dtype.
bool is_missing(const Match& m);

bool is_narrow_float(DType type);

// ---- dtypes with the lanes of another
DType like(DType lanes_of, DType element);
DType signed_of(DType type);  // the integer of the same width
DType unsigned_of(DType type);
DType unsigned_of_bits(int bits);

// ---- constants of the dtype of x: a number rounded to it, or its bits
UOp number(UOp x, double value);
UOp bits_like(UOp x, uint64_t bits);

// ---- ops that build.h has no name for
UOp shift_left(UOp x, int by);
UOp shift_right(UOp x, int by);
UOp bit_xor(UOp x, UOp y);
UOp magnitude(UOp x);            // of a float: its bits without the sign, as a signed int
UOp with_sign(UOp x, UOp sign);  // x, not negative, with the sign bit of another float
UOp multiply_add(const Decomposition& d, UOp x, UOp y, UOp z);  // fused where the target can
// The same with one rounding, or as good as one: where it cannot be fused, float32 goes through
// float64. A target without that has text for MULACC of float32, native or not.
UOp multiply_add_once(const Decomposition& d, UOp x, UOp y, UOp z);
UOp horner(const Decomposition& d, UOp x, std::span<const double> coefficients);  // c0 + c1 x + ...
UOp any_lane(UOp condition);  // one bool: whether it holds in any lane

// `value` where `gate` is false in all lanes; else what `otherwise` gives, in the lanes of the
// gate.
UOp unless(Decomposition& d, UOp value, UOp gate, UOp otherwise);

// A narrow float as float32, NaNs with any payload.
UOp widened(const Decomposition& d, UOp narrow);

}  // namespace weft
