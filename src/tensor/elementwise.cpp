// Elementwise operations: operands promoted, broadcast, and made one Value.
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tensor/operand.h"
#include "tensor/promote.h"
#include "tensor/remainder.h"
#include "tensor/term.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

constexpr OpSet kRoundings = {Op::TRUNC, Op::FLOOR, Op::CEIL, Op::ROUND};

void check_group(Op op, OpGroup group) {
  if (info(op).group == group && op != Op::CAST && op != Op::BITCAST) return;
  throw Error(fmt::format("[{}] it is no {} operation", name_of(op), name_of(group)));
}

// x op y of operands of the dtype `type`, which the op takes.
Ref<Value> combine(Op op, DType type, Ints shape, const Ref<Value>& x, const Ref<Value>& y) {
  if (type.is_float() && op == Op::MOD) return remainder_down(Term(x), Term(y)).value();
  if (type.is_float() && op == Op::IDIV) {
    const DType wide = computing_dtype(type);
    const Term a(cast_value(x, wide)), b(cast_value(y, wide));
    return cast_value(quotient_down(a, b).value(), type);
  }
  return apply(op, yields_bool(op) ? dtypes::bool_ : type, shape, x, y);
}

// The dtype that operands are cast to: floats divide with rounding too.
DType binary_dtype(Op op, DType type) {
  check_group(op, OpGroup::Binary);
  if (type.is_float() && (op == Op::IDIV || op == Op::MOD)) return type;
  return operand_dtype(op, type);
}

}  // namespace

Tensor Tensor::unary(Op op) const {
  check_group(op, OpGroup::Unary);
  if (kRoundings.has(op) && !dtype().is_float()) return tensor_of(read(*this));
  const DType type = operand_dtype(op, dtype());
  return tensor_of(apply(op, type, shape(), cast_value(read(*this), type)));
}

Tensor Tensor::binary(Op op, const Tensor& y) const {
  check_same_device(name_of(op), *this, y);
  const DType type = binary_dtype(op, promote(name_of(op), dtype(), y.dtype()));
  const Sizes result = broadcast_shapes(name_of(op), shape(), y.shape());
  return tensor_of(combine(op, type, result, cast_value(as_operand(read(*this), result), type),
                           cast_value(as_operand(read(y), result), type)));
}

namespace {

enum class Side : uint8_t { kLeft, kRight };

// What a comparison with a number gives that an integer dtype does not hold, on the side given: it
// lies above or below all values, and so the result is one number. Empty for other operations.
std::optional<bool> compared_with_far(Op op, DType type, Number number, Side side) {
  const Fit fit = yields_bool(op) ? fit_of(type, number) : Fit::kFits;
  if (fit == Fit::kFits) return {};
  if (op == Op::CMPLT) return fit == (side == Side::kRight ? Fit::kAbove : Fit::kBelow);
  return op == Op::CMPNE;
}

}  // namespace

Tensor Tensor::binary(Op op, Number y) const {
  const DType type = binary_dtype(op, promote(dtype(), y));
  if (const auto same = compared_with_far(op, type, y, Side::kRight)) {
    return tensor_of(full_value(name_of(op), device_of(*this), dtypes::bool_, shape(), *same));
  }
  return tensor_of(combine(op, type, shape(), cast_value(read(*this), type),
                           constant_value(name_of(op), device_of(*this), type, y)));
}

Tensor Tensor::reverse_binary(Op op, Number x) const {
  const DType type = binary_dtype(op, promote(dtype(), x));
  if (const auto same = compared_with_far(op, type, x, Side::kLeft)) {
    return tensor_of(full_value(name_of(op), device_of(*this), dtypes::bool_, shape(), *same));
  }
  return tensor_of(combine(op, type, shape(),
                           constant_value(name_of(op), device_of(*this), type, x),
                           cast_value(read(*this), type)));
}

namespace {

Ref<Value> condition_of(const Tensor& condition, Ints shape) {
  Ref<Value> c = read(condition);
  if (!c->dtype().is_bool()) {
    const Ref<Value> zero = wrapped_constant(c->device(), c->dtype(), int64_t(0));
    const Sizes own(c->shape());
    c = apply(Op::CMPNE, dtypes::bool_, own, std::move(c), zero);
  }
  return as_operand(std::move(c), shape);
}

Tensor select(const Tensor& condition, DType type, Ints shape, Ref<Value> x, Ref<Value> y) {
  return tensor_of(apply(Op::WHERE, type, shape, condition_of(condition, shape),
                         cast_value(as_operand(std::move(x), shape), type),
                         cast_value(as_operand(std::move(y), shape), type)));
}

}  // namespace

Tensor Tensor::where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  check_same_device("where", condition, x);
  check_same_device("where", x, y);
  const Sizes shape =
      broadcast_shapes("where", condition.shape(), broadcast_shapes("where", x.shape(), y.shape()));
  return select(condition, promote("where", x.dtype(), y.dtype()), shape, read(x), read(y));
}

Tensor Tensor::where(const Tensor& condition, const Tensor& x, Number y) {
  check_same_device("where", condition, x);
  const DType type = promote(x.dtype(), y);
  const Sizes shape = broadcast_shapes("where", condition.shape(), x.shape());
  return select(condition, type, shape, read(x), constant_value("where", device_of(x), type, y));
}

Tensor Tensor::where(const Tensor& condition, Number x, const Tensor& y) {
  check_same_device("where", condition, y);
  const DType type = promote(y.dtype(), x);
  const Sizes shape = broadcast_shapes("where", condition.shape(), y.shape());
  return select(condition, type, shape, constant_value("where", device_of(y), type, x), read(y));
}

Tensor Tensor::where(const Tensor& condition, Number x, Number y) {
  const DType type = promote(dtype_of_number(x), y);
  Device& device = device_of(condition);
  return select(condition, type, condition.shape(), constant_value("where", device, type, x),
                constant_value("where", device, type, y));
}

Tensor Tensor::cast(DType dtype) const {
  check_element_dtype("cast", dtype);
  if (dtype == this->dtype()) return *this;
  return tensor_of(cast_value(read(*this), dtype));
}

Tensor Tensor::add(const Tensor& y) const { return binary(Op::ADD, y); }
Tensor Tensor::sub(const Tensor& y) const { return binary(Op::SUB, y); }
Tensor Tensor::mul(const Tensor& y) const { return binary(Op::MUL, y); }
Tensor Tensor::div(const Tensor& y) const { return binary(Op::FDIV, y); }
Tensor Tensor::add(Number y) const { return binary(Op::ADD, y); }
Tensor Tensor::sub(Number y) const { return binary(Op::SUB, y); }
Tensor Tensor::mul(Number y) const { return binary(Op::MUL, y); }
Tensor Tensor::div(Number y) const { return binary(Op::FDIV, y); }
Tensor Tensor::neg() const { return unary(Op::NEG); }

Tensor operator+(const Tensor& x, const Tensor& y) { return x.add(y); }
Tensor operator-(const Tensor& x, const Tensor& y) { return x.sub(y); }
Tensor operator*(const Tensor& x, const Tensor& y) { return x.mul(y); }
Tensor operator/(const Tensor& x, const Tensor& y) { return x.div(y); }
Tensor operator+(const Tensor& x, Number y) { return x.add(y); }
Tensor operator-(const Tensor& x, Number y) { return x.sub(y); }
Tensor operator*(const Tensor& x, Number y) { return x.mul(y); }
Tensor operator/(const Tensor& x, Number y) { return x.div(y); }
Tensor operator+(Number x, const Tensor& y) { return y.reverse_binary(Op::ADD, x); }
Tensor operator-(Number x, const Tensor& y) { return y.reverse_binary(Op::SUB, x); }
Tensor operator*(Number x, const Tensor& y) { return y.reverse_binary(Op::MUL, x); }
Tensor operator/(Number x, const Tensor& y) { return y.reverse_binary(Op::FDIV, x); }
Tensor operator-(const Tensor& x) { return x.neg(); }

}  // namespace weft
