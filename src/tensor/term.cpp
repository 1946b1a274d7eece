// Elementwise Values by their formulas.
#include "tensor/term.h"

#include <cstddef>
#include <span>
#include <string_view>

#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "tensor/operand.h"
#include "tensor/promote.h"
#include "value/movement.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

Term Term::like(Number number) const {
  return Term(wrapped_constant(value_->device(), dtype(), number));
}

Term Term::detach() const {
  return Term(Value::make(Op::DETACH, dtype(), value_->device(), value_->shape(), {}, value_));
}

Term apply(Op op, const Term& x) {
  return Term(apply(op, x.dtype(), x.value()->shape(), x.value()));
}

Term apply(Op op, const Term& x, const Term& y) {
  const Ints shape = x.value()->shape().empty() ? y.value()->shape() : x.value()->shape();
  const DType dtype = yields_bool(op) ? dtypes::bool_ : x.dtype();
  return Term(apply(op, dtype, shape, x.value(), y.value()));
}

Term operator+(const Term& x, const Term& y) { return apply(Op::ADD, x, y); }
Term operator-(const Term& x, const Term& y) { return apply(Op::SUB, x, y); }
Term operator*(const Term& x, const Term& y) { return apply(Op::MUL, x, y); }
Term operator/(const Term& x, const Term& y) { return apply(Op::FDIV, x, y); }
Term operator+(const Term& x, double y) { return x + x.like(y); }
Term operator-(const Term& x, double y) { return x - x.like(y); }
Term operator*(const Term& x, double y) { return x * x.like(y); }
Term operator/(const Term& x, double y) { return x / x.like(y); }
Term operator+(double x, const Term& y) { return y.like(x) + y; }
Term operator-(double x, const Term& y) { return y.like(x) - y; }
Term operator*(double x, const Term& y) { return y.like(x) * y; }
Term operator/(double x, const Term& y) { return y.like(x) / y; }
Term operator-(const Term& x) { return apply(Op::NEG, x); }
Term operator<(const Term& x, const Term& y) { return apply(Op::CMPLT, x, y); }
Term operator<(const Term& x, double y) { return x < x.like(y); }
Term operator<(double x, const Term& y) { return y.like(x) < y; }
Term operator==(const Term& x, const Term& y) { return apply(Op::CMPEQ, x, y); }
Term operator==(const Term& x, double y) { return x == x.like(y); }
Term operator!=(const Term& x, const Term& y) { return apply(Op::CMPNE, x, y); }
Term operator&(const Term& x, const Term& y) { return apply(Op::AND, x, y); }
Term operator|(const Term& x, const Term& y) { return apply(Op::OR, x, y); }
Term operator!(const Term& x) { return apply(Op::NOT, x); }

Term where(const Term& condition, const Term& x, const Term& y) {
  Ints shape = condition.value()->shape();
  if (shape.empty()) shape = x.value()->shape();
  if (shape.empty()) shape = y.value()->shape();
  return Term(apply(Op::WHERE, x.dtype(), shape, condition.value(), x.value(), y.value()));
}
Term where(const Term& condition, const Term& x, double y) {
  return where(condition, x, x.like(y));
}
Term where(const Term& condition, double x, const Term& y) {
  return where(condition, y.like(x), y);
}

Term cast(const Term& x, DType dtype) { return Term(cast_value(x.value(), dtype)); }
Term bitcast(const Term& x, DType dtype) { return Term(bits_as(x.value(), dtype)); }

Term exp(const Term& x) { return apply(Op::EXP, x); }
Term log(const Term& x) { return apply(Op::LOG, x); }
Term sqrt(const Term& x) { return apply(Op::SQRT, x); }
Term floor(const Term& x) { return apply(Op::FLOOR, x); }
Term trunc(const Term& x) { return apply(Op::TRUNC, x); }
Term is_nan(const Term& x) { return x != x; }

Term sign_bit(const Term& x) {
  constexpr DType ints[] = {dtypes::int8, dtypes::int16, dtypes::int32, dtypes::int64};
  const int bits = x.dtype().bits();
  return bitcast(x, ints[bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3]) < 0;
}

Term negate(const Term& condition, const Term& x) { return where(condition, -x, x); }
Term at_most(const Term& x, double most) { return where(most < x, most, x); }
Term at_least(const Term& x, double least) { return where(x < least, least, x); }

Term polynomial(const Term& x, std::span<const double> coefficients) {
  Term sum = x.like(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

DType real_dtype(DType dtype) { return dtype.is_float() ? dtype : default_float(); }
DType computing_dtype(DType real) { return real.bits() < 32 ? dtypes::float32 : real; }

Term real_term(const Tensor& x) {
  return Term(cast_value(read(x), computing_dtype(real_dtype(x.dtype()))));
}

Tensor tensor_of(const Term& x, DType dtype) { return tensor_of(cast_value(x.value(), dtype)); }

namespace {

// Promoted to `dtype`, which terms have as `computed`.
Met meet_in(std::string_view what, const Tensor& x, Operand y, DType dtype, DType computed) {
  if (y.tensor() == nullptr) {
    return {Term(cast_value(read(x), computed)),
            Term(constant_value(what, device_of(x), computed, y.number())), dtype};
  }
  const Sizes shape = broadcast_shapes(what, x.shape(), y.tensor()->shape());
  return {Term(cast_value(as_operand(read(x), shape), computed)),
          Term(cast_value(as_operand(read(*y.tensor()), shape), computed)), dtype};
}

DType promoted(std::string_view what, const Tensor& x, Operand y) {
  if (y.tensor() == nullptr) return promote(x.dtype(), y.number());
  check_same_device(what, x, *y.tensor());
  return promote(what, x.dtype(), y.tensor()->dtype());
}

}  // namespace

Met meet(std::string_view what, const Tensor& x, Operand y) {
  const DType dtype = promoted(what, x, y);
  return meet_in(what, x, y, dtype, dtype);
}

Met meet_as_reals(std::string_view what, const Tensor& x, Operand y) {
  const DType dtype = real_dtype(promoted(what, x, y));
  return meet_in(what, x, y, dtype, computing_dtype(dtype));
}

}  // namespace weft
