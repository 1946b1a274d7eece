// Definitions and elementwise ops, checked.
#include "ir/build.h"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/spec.h"

namespace weft {
namespace {

DType result_type(Op op, DType operand) {
  return yields_bool(op) ? dtypes::bool_.vec(operand.lanes) : operand;
}

UOp checked(UOp n) {
  check_node(n);
  return n;
}

UOp literal(UOp like, int64_t value) {
  return constant_bits(like.arena(), like.dtype(), bits_of_int(like.dtype(), value));
}

}  // namespace

UOp constant(Arena& arena, DType type, int64_t value) {
  if (type.is_float()) return constant_bits(arena, type, bits_of_int(type, value));
  const uint64_t bits = bits_of_int(type, value);
  const bool fits = type.is_bool()       ? value == 0 || value == 1
                    : type.is_unsigned() ? value >= 0 && bits == uint64_t(value)
                                         : int64_t(bits) == value;
  if (!fits || type.is_void() || type.is_pointer()) {
    throw DTypeError(fmt::format("[const] {} is not a value of {}", value, type.name()));
  }
  return constant_bits(arena, type, bits);
}

UOp constant(Arena& arena, DType type, int value) { return constant(arena, type, int64_t(value)); }

UOp constant(Arena& arena, DType type, double value) {
  if (!type.is_float()) {
    throw DTypeError(fmt::format("[const] {} is a float, {} is not", value, type.name()));
  }
  return constant_bits(arena, type, bits_of_double(type, value));
}

UOp constant_bits(Arena& arena, DType type, uint64_t bits) {
  return checked(arena.make(Op::CONST, type, {}, Arg::bits(bits)));
}

UOp index_const(Arena& arena, int64_t value) {
  return constant_bits(arena, dtypes::index, uint64_t(value));
}

UOp bool_const(Arena& arena, bool value) {
  return constant_bits(arena, dtypes::bool_, value ? 1 : 0);
}

UOp variable(Arena& arena, std::string_view name, int64_t lo, int64_t hi, DType type) {
  return checked(arena.make(
      Op::VARIABLE, type, {constant(arena, type, lo), constant(arena, type, hi)}, Arg::name(name)));
}

UOp bind(UOp variable, UOp value) {
  return checked(variable.arena().make(Op::BIND, variable.dtype(), {variable, value}));
}

UOp range(Arena& arena, Dim size, int64_t id, AxisType axis) {
  return checked(arena.make(Op::RANGE, dtypes::index, {size.as_uop(arena)}, Arg::range(id, axis)));
}

UOp special(Arena& arena, std::string_view name, Dim size) {
  return checked(arena.make(Op::SPECIAL, dtypes::index, {size.as_uop(arena)}, Arg::name(name)));
}

UOp device(Arena& arena, std::string_view name) {
  return checked(arena.make(Op::DEVICE, dtypes::void_, {}, Arg::name(name)));
}

UOp buffer(Arena& arena, DType type, Dim size, std::string_view device_name, int64_t id) {
  return checked(arena.make(Op::BUFFER, type, {size.as_uop(arena), device(arena, device_name)},
                            Arg::integer(id)));
}

UOp iota(Arena& arena, DType type, Dim size) {
  return checked(arena.make(Op::IOTA, type, {size.as_uop(arena)}));
}

UOp define_global(Arena& arena, DType element, Dim size, int64_t id) {
  return checked(arena.make(Op::DEFINE_GLOBAL, element.ptr(AddrSpace::kGlobal),
                            {size.as_uop(arena)}, Arg::integer(id)));
}

UOp define_global(Arena& arena, DType element, int64_t id) {
  return checked(arena.make(Op::DEFINE_GLOBAL, element, {}, Arg::integer(id)));
}

UOp define_local(Arena& arena, DType element, Dim size, int64_t id) {
  return checked(arena.make(Op::DEFINE_LOCAL, element.ptr(AddrSpace::kLocal), {size.as_uop(arena)},
                            Arg::integer(id)));
}

UOp define_reg(Arena& arena, DType type, int64_t id) {
  return checked(arena.make(Op::DEFINE_REG, type, {}, Arg::integer(id)));
}

UOp unary(Op op, UOp x) { return checked(x.arena().make(op, result_type(op, x.dtype()), {x})); }

UOp binary(Op op, UOp x, UOp y) {
  return checked(x.arena().make(op, result_type(op, x.dtype()), {x, y}));
}

UOp where(UOp condition, UOp x, UOp y) {
  return checked(x.arena().make(Op::WHERE, x.dtype(), {condition, x, y}));
}

UOp mulacc(UOp x, UOp y, UOp z) {
  return checked(x.arena().make(Op::MULACC, x.dtype(), {x, y, z}));
}

UOp cast(UOp x, DType type) {
  if (x.dtype() == type) return x;
  return checked(x.arena().make(Op::CAST, type, {x}));
}

UOp bitcast(UOp x, DType type) {
  if (x.dtype() == type) return x;
  return checked(x.arena().make(Op::BITCAST, type, {x}));
}

UOp operator+(UOp x, UOp y) { return binary(Op::ADD, x, y); }
UOp operator-(UOp x, UOp y) { return binary(Op::SUB, x, y); }
UOp operator*(UOp x, UOp y) { return binary(Op::MUL, x, y); }
UOp operator/(UOp x, UOp y) { return binary(x.dtype().is_float() ? Op::FDIV : Op::IDIV, x, y); }
UOp operator%(UOp x, UOp y) { return binary(Op::MOD, x, y); }
UOp operator<(UOp x, UOp y) { return binary(Op::CMPLT, x, y); }
UOp operator&(UOp x, UOp y) { return binary(Op::AND, x, y); }
UOp operator|(UOp x, UOp y) { return binary(Op::OR, x, y); }
UOp operator-(UOp x) { return unary(Op::NEG, x); }
UOp operator~(UOp x) { return unary(Op::NOT, x); }
UOp operator+(UOp x, int64_t y) { return x + literal(x, y); }
UOp operator-(UOp x, int64_t y) { return x - literal(x, y); }
UOp operator*(UOp x, int64_t y) { return x * literal(x, y); }
UOp operator/(UOp x, int64_t y) { return x / literal(x, y); }
UOp operator%(UOp x, int64_t y) { return x % literal(x, y); }
UOp operator<(UOp x, int64_t y) { return x < literal(x, y); }
UOp max(UOp x, UOp y) { return binary(Op::MAX, x, y); }
UOp min(UOp x, UOp y) { return binary(Op::MIN, x, y); }
UOp equal(UOp x, UOp y) { return binary(Op::CMPEQ, x, y); }
UOp not_equal(UOp x, UOp y) { return binary(Op::CMPNE, x, y); }

}  // namespace weft
