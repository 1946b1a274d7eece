// What the rule tables of decompose build with.
#include "codegen/decompose_rules.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {

bool is_missing(const Match& m) {
  const UOp n = m.root();
  const DType type = n.src(n.src_count() - 1).dtype();
  return !type.is_pointer() && !m.context<Decomposition>().can(n.op(), type);
}

bool is_narrow_float(DType type) { return (kNarrowFloats & set_of(type.scalar)) != 0; }

DType like(DType lanes_of, DType element) { return element.vec(lanes_of.lanes); }

DType unsigned_of_bits(int bits) {
  if (bits <= 8) return dtypes::uint8;
  if (bits <= 16) return dtypes::uint16;
  return bits <= 32 ? dtypes::uint32 : dtypes::uint64;
}

DType unsigned_of(DType type) { return like(type, unsigned_of_bits(type.bits())); }

DType signed_of(DType type) {
  const int bits = type.bits();
  const DType element = bits <= 8    ? dtypes::int8
                        : bits <= 16 ? dtypes::int16
                        : bits <= 32 ? dtypes::int32
                                     : dtypes::int64;
  return like(type, element);
}

UOp number(UOp x, double value) {
  return constant_bits(x.arena(), x.dtype(), bits_of_double(x.dtype(), value));
}

UOp bits_like(UOp x, uint64_t bits) {
  const uint64_t held = x.dtype().is_float() ? bits : bits_of_uint(x.dtype(), bits);
  return constant_bits(x.arena(), x.dtype(), held);
}

UOp shift_left(UOp x, int by) { return binary(Op::SHL, x, bits_like(x, uint64_t(by))); }
UOp shift_right(UOp x, int by) { return binary(Op::SHR, x, bits_like(x, uint64_t(by))); }
UOp bit_xor(UOp x, UOp y) { return binary(Op::XOR, x, y); }

UOp magnitude(UOp x) {
  const UOp bits = bitcast(x, signed_of(x.dtype()));
  return bits & bits_like(bits, ~(uint64_t(1) << (x.dtype().bits() - 1)));
}

UOp with_sign(UOp x, UOp sign) {
  const UOp bits = bitcast(sign, signed_of(sign.dtype()));
  const UOp top = bits & bits_like(bits, uint64_t(1) << (x.dtype().bits() - 1));
  return bitcast(bitcast(x, bits.dtype()) | top, x.dtype());
}

UOp multiply_add(const Decomposition& d, UOp x, UOp y, UOp z) {
  return d.can(Op::MULACC, x.dtype()) ? mulacc(x, y, z) : x * y + z;
}

UOp multiply_add_once(const Decomposition& d, UOp x, UOp y, UOp z) {
  if (d.can(Op::MULACC, x.dtype()) || x.dtype().scalar != Scalar::kFloat32) {
    return multiply_add(d, x, y, z);
  }
  if (!d.has_float64()) return mulacc(x, y, z);
  const DType wide = like(x.dtype(), dtypes::float64);
  return cast(cast(x, wide) * cast(y, wide) + cast(z, wide), x.dtype());
}

UOp horner(const Decomposition& d, UOp x, std::span<const double> coefficients) {
  UOp sum = number(x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) {
    sum = multiply_add(d, sum, x, number(x, coefficients[i]));
  }
  return sum;
}

UOp any_lane(UOp condition) {
  while (condition.dtype().lanes > 1) {
    const int64_t lanes = condition.dtype().lanes, half = (lanes + 1) / 2;
    std::vector<int64_t> low(size_t(half), 0), high(size_t(half), 0);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), lanes - half);
    condition = gep(condition, low) | gep(condition, high);
  }
  return condition;
}

UOp unless(Decomposition& d, UOp value, UOp gate, UOp otherwise) {
  const UOp reg = define_reg(value.arena(), value.dtype(), d.next_register++);
  const UOp first = reg.assign(value);
  const UOp second = after(reg, first).assign(where(gate, otherwise, value), any_lane(gate));
  return after(reg, second);
}

}  // namespace weft
