// Formulas on Values: elementwise, of operands of one dtype, each of the formula's shape or a
// scalar.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "value/value.h"
#include "weft/tensor.h"

namespace weft {

class Term {
 public:
  explicit Term(Ref<Value> value) : value_(std::move(value)) {}

  const Ref<Value>& value() const { return value_; }
  DType dtype() const { return value_->dtype(); }
  bool is_64() const { return dtype().bits() == 64; }
  Term like(Number number) const;  // the number in this dtype
  Term detach() const;             // a constant for the gradient

 private:
  Ref<Value> value_;
};

Term apply(Op op, const Term& x);
Term apply(Op op, const Term& x, const Term& y);

Term operator+(const Term& x, const Term& y);
Term operator-(const Term& x, const Term& y);
Term operator*(const Term& x, const Term& y);
Term operator/(const Term& x, const Term& y);
Term operator+(const Term& x, double y);
Term operator-(const Term& x, double y);
Term operator*(const Term& x, double y);
Term operator/(const Term& x, double y);
Term operator+(double x, const Term& y);
Term operator-(double x, const Term& y);
Term operator*(double x, const Term& y);
Term operator/(double x, const Term& y);
Term operator-(const Term& x);
// Bools.
Term operator<(const Term& x, const Term& y);
Term operator<(const Term& x, double y);
Term operator<(double x, const Term& y);
Term operator==(const Term& x, const Term& y);
Term operator==(const Term& x, double y);
Term operator!=(const Term& x, const Term& y);
Term operator&(const Term& x, const Term& y);
Term operator|(const Term& x, const Term& y);
Term operator!(const Term& x);

Term where(const Term& condition, const Term& x, const Term& y);
Term where(const Term& condition, const Term& x, double y);
Term where(const Term& condition, double x, const Term& y);
Term cast(const Term& x, DType dtype);
Term bitcast(const Term& x, DType dtype);

Term exp(const Term& x);
Term log(const Term& x);
Term sqrt(const Term& x);
Term floor(const Term& x);
Term trunc(const Term& x);
Term is_nan(const Term& x);
Term sign_bit(const Term& x);  // of a float: set for -0 also
// -x where the condition holds. negate(sign_bit(x), x) is |x|, and has at 0 the gradient of a side.
Term negate(const Term& condition, const Term& x);
// At most, at least a number; NaN stays. At the number itself the gradient is that of x.
Term at_most(const Term& x, double most);
Term at_least(const Term& x, double least);
// c0 + c1 x + c2 x^2 + ...
Term polynomial(const Term& x, std::span<const double> coefficients);

// ---- functions that are made of those, to a few units in the last place
Term expm1(const Term& x);
Term log1p(const Term& x);
Term tanh(const Term& x);
Term erf(const Term& x);
Term sigmoid(const Term& x);
Term softplus(const Term& x);  // log(1 + exp(x))
Term logaddexp(const Term& x, const Term& y);

// ---- between tensors and terms

// float32 for all but floats: what functions of reals give.
DType real_dtype(DType dtype);
// The dtype in which they compute: floats of less than 32 bits are rounded once, at the end.
DType computing_dtype(DType real);
Term real_term(const Tensor& x);
Tensor tensor_of(const Term& x, DType dtype);

// A function of one real.
template <class Function>
Tensor of_real(const Tensor& x, Function&& function) {
  return tensor_of(function(real_term(x)), real_dtype(x.dtype()));
}

// Two operands that have met: promoted to one dtype, and broadcast.
struct Met {
  Term x, y;
  DType dtype;
};
Met meet(std::string_view what, const Tensor& x, Operand y);
// The same, as reals: `dtype` is that of the result, the terms compute in a wider one.
Met meet_as_reals(std::string_view what, const Tensor& x, Operand y);

template <class Function>
Tensor of_reals(std::string_view what, const Tensor& x, Operand y, Function&& function) {
  const Met met = meet_as_reals(what, x, y);
  return tensor_of(function(met.x, met.y), met.dtype);
}

}  // namespace weft
