// One function per kind of operation, in a table by op.
#include "tensor/gradient_rules.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tensor/operand.h"
#include "value/factor.h"
#include "value/movement.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

const Ref<Value>& StepBack::operand(size_t i) const {
  if (step_.operands[i]) return step_.operands[i];
  throw InternalError(fmt::format("[gradient] {} does not say that its gradient reads source {}",
                                  name_of(value().op()), i));
}

const Ref<Value>& StepBack::result() const {
  if (step_.out) return step_.out;
  throw InternalError(fmt::format("[gradient] {} does not say that its gradient reads its result",
                                  name_of(value().op())));
}

namespace {

// ------------------------------------------------------------------------------------ arithmetic

Ref<Value> number(const StepBack& s, double x) {
  return wrapped_constant(s.device(), s.dtype(), x);
}

Ref<Value> unary(Op op, const Ref<Value>& x) { return apply(op, x->dtype(), x->shape(), x); }

// Of one dtype; a scalar is an operand of any shape.
Ref<Value> binary(Op op, const Ref<Value>& x, const Ref<Value>& y) {
  const Ints shape = x->shape().empty() ? y->shape() : x->shape();
  return apply(op, yields_bool(op) ? dtypes::bool_ : x->dtype(), shape, x, y);
}
Ref<Value> mul(const Ref<Value>& x, const Ref<Value>& y) { return binary(Op::MUL, x, y); }
Ref<Value> div(const Ref<Value>& x, const Ref<Value>& y) { return binary(Op::FDIV, x, y); }
Ref<Value> neg(const Ref<Value>& x) { return unary(Op::NEG, x); }
Ref<Value> select(const Ref<Value>& condition, const Ref<Value>& x, const Ref<Value>& y) {
  const DType dtype = x->dtype();
  const Sizes shape(!condition->shape().empty() ? condition->shape()
                    : !x->shape().empty()       ? x->shape()
                                                : y->shape());
  return apply(Op::WHERE, dtype, shape, condition, x, y);
}

Ref<Value> sum_over(Ref<Value> x, const Sizes& axes) {
  Sizes shape(x->shape()), over{int64_t(Op::ADD)};
  for (const int64_t axis : axes) {
    if (shape[size_t(axis)] > 1) over.push_back(axis);
    shape[size_t(axis)] = 1;
  }
  if (over.size() == 1) return x;
  Device& device = x->device();
  const DType dtype = x->dtype();
  const DType in = dtype.bits() < 32 ? dtypes::float32 : dtype;  // as sums of tensors are
  x = Value::make(Op::REDUCE_AXIS, in, device, shape, over, cast_value(std::move(x), in));
  return cast_value(std::move(x), dtype);
}

// By an operand that was a scalar, or of the shape of the result.
Ref<Value> fitted(Ref<Value> x, Ints shape) {
  if (!shape.empty() || x->shape().empty()) return x;
  Sizes all;
  for (size_t i = 0; i < x->shape().size(); i++) all.push_back(int64_t(i));
  return reshaped(sum_over(std::move(x), all), shape);
}

// ------------------------------------------------------------------------------ elementwise, unary

using Derivative = Ref<Value> (*)(const StepBack&, const Ref<Value>& g);

template <Derivative derivative>
Gradients of_unary(const StepBack& s) {
  return {derivative(s, s.gradient())};
}

Ref<Value> d_cast(const StepBack& s, const Ref<Value>& g) {
  return cast_value(g, s.source(0).dtype());
}
Ref<Value> d_neg(const StepBack&, const Ref<Value>& g) { return neg(g); }
Ref<Value> d_recip(const StepBack& s, const Ref<Value>& g) {
  return neg(mul(g, mul(s.result(), s.result())));
}
Ref<Value> d_sqrt(const StepBack& s, const Ref<Value>& g) {
  return div(g, mul(s.result(), number(s, 2)));
}
Ref<Value> d_exp(const StepBack& s, const Ref<Value>& g) { return mul(g, s.result()); }
Ref<Value> d_exp2(const StepBack& s, const Ref<Value>& g) {
  return mul(mul(g, s.result()), number(s, std::numbers::ln2));
}
Ref<Value> d_log(const StepBack& s, const Ref<Value>& g) { return div(g, s.operand(0)); }
Ref<Value> d_log2(const StepBack& s, const Ref<Value>& g) {
  return div(g, mul(s.operand(0), number(s, std::numbers::ln2)));
}
Ref<Value> d_sin(const StepBack& s, const Ref<Value>& g) {
  return mul(g, unary(Op::COS, s.operand(0)));
}
Ref<Value> d_cos(const StepBack& s, const Ref<Value>& g) {
  return neg(mul(g, unary(Op::SIN, s.operand(0))));
}
Ref<Value> d_copy(const StepBack& s, const Ref<Value>& g) {
  return Value::make(Op::COPY, s.dtype(), s.source(0).device(), g->shape(), {}, g);
}
Ref<Value> d_same(const StepBack&, const Ref<Value>& g) { return g; }

// ----------------------------------------------------------------------------- elementwise, others

Gradients of_add(const StepBack& s) { return {s.gradient(), s.gradient()}; }

Gradients of_sub(const StepBack& s) {
  return {s.gradient(), s.wants(1) ? neg(s.gradient()) : Ref<Value>()};
}

Gradients of_mul(const StepBack& s) {
  Gradients by;
  if (s.wants(0)) by[0] = mul(s.gradient(), s.operand(1));
  if (s.wants(1)) by[1] = mul(s.gradient(), s.operand(0));
  return by;
}

Gradients of_fdiv(const StepBack& s) {
  const Ref<Value> by_x = div(s.gradient(), s.operand(1));
  return {by_x, s.wants(1) ? neg(mul(by_x, s.result())) : Ref<Value>()};
}

// Equal ones share it.
template <Op op>
Gradients of_choice(const StepBack& s) {
  const Ref<Value>&x = s.operand(0), &y = s.operand(1);
  const auto part = [&](const Ref<Value>& mine, const Ref<Value>& other) {
    const Ref<Value> wins =
        op == Op::MAX ? binary(Op::CMPLT, other, mine) : binary(Op::CMPLT, mine, other);
    const Ref<Value> half = mul(s.gradient(), number(s, 0.5));
    return select(wins, s.gradient(), select(binary(Op::CMPEQ, mine, other), half, number(s, 0)));
  };
  return {s.wants(0) ? part(x, y) : Ref<Value>(), s.wants(1) ? part(y, x) : Ref<Value>()};
}

Gradients of_where(const StepBack& s) {
  Gradients by;
  const Ref<Value> zero = number(s, 0);
  if (s.wants(1)) by[1] = select(s.operand(0), s.gradient(), zero);
  if (s.wants(2)) by[2] = select(s.operand(0), zero, s.gradient());
  return by;
}

// Of 0 by a source, in its own dtype and on its own device.
Ref<Value> zeros_for(const Value& source) {
  return broadcast(wrapped_constant(source.device(), source.dtype(), 0.0), source.shape());
}

Gradients of_contiguous_backward(const StepBack& s) {
  const bool is_made_contiguous = s.value().is(Value::Kind::kPlain);
  return {is_made_contiguous ? unary(Op::CONTIGUOUS, s.gradient()) : s.gradient(),
          s.wants(1) ? zeros_for(s.source(1)) : Ref<Value>()};
}

// No element, no share in any.
Gradients of_empty(const StepBack& s) {
  Gradients by;
  for (size_t i = 0; i < by.size(); i++) {
    if (s.wants(i)) by[i] = zeros_for(s.source(i));
  }
  return by;
}

// --------------------------------------------------------------------------------------- movement

Ref<Value> move(Op op, Ref<Value> x, Ints shape, Ints numbers = {}) {
  const Movement step{op, Sizes(shape), Sizes(numbers)};
  return moved(std::move(x), std::span(&step, 1));
}

Ref<Value> d_reshape(const StepBack& s, const Ref<Value>& g) {
  return reshaped(g, s.source(0).shape());
}

Ref<Value> d_permute(const StepBack& s, const Ref<Value>& g) {
  const Ints order = s.value().numbers();
  Sizes inverse(order.size());
  for (size_t i = 0; i < order.size(); i++) inverse[size_t(order[i])] = int64_t(i);
  return move(Op::PERMUTE, g, s.source(0).shape(), inverse);
}

Ref<Value> d_expand(const StepBack& s, const Ref<Value>& g) {
  const Ints from = s.source(0).shape();
  Sizes axes;
  for (size_t i = 0; i < from.size(); i++) {
    if (from[i] != s.shape()[i]) axes.push_back(int64_t(i));
  }
  return sum_over(g, axes);
}

Ref<Value> d_pad(const StepBack& s, const Ref<Value>& g) {
  const Ints from = s.source(0).shape();
  Sizes begins(s.value().numbers().subspan(0, from.size())), ends = begins;
  for (size_t i = 0; i < from.size(); i++) ends[i] += from[i];
  begins.append(ends);
  return move(Op::SHRINK, g, from, begins);
}

Ref<Value> d_shrink(const StepBack& s, const Ref<Value>& g) {
  const Ints from = s.source(0).shape();
  const size_t rank = from.size();
  Sizes befores(s.value().numbers().subspan(0, rank)), afters(s.value().numbers().subspan(rank));
  for (size_t i = 0; i < rank; i++) afters[i] = from[i] - afters[i];
  befores.append(afters);
  return move(Op::PAD, g, from, befores);
}

Ref<Value> d_flip(const StepBack& s, const Ref<Value>& g) {
  return move(Op::FLIP, g, s.shape(), s.value().numbers());
}

Ref<Value> d_view(const StepBack& s, const Ref<Value>& g) {
  const Ints numbers = s.value().numbers();
  const size_t rank = s.shape().size();
  const View view{s.dtype(), Sizes(s.shape()), Sizes(numbers.subspan(0, rank)), numbers[rank]};
  const Value& from = s.source(0);
  return reshaped(gradient_through_view(g, view, from.numel()), from.shape());
}

// -------------------------------------------------------------------------------------- reductions

// Each of the largest (smallest) elements gets an equal part.
Ref<Value> by_extreme(const StepBack& s, const Ref<Value>& g, const Sizes& axes) {
  const Ref<Value>& x = s.operand(0);
  const Ref<Value> extreme = broadcast(s.result(), x->shape());
  const auto is_nan = [&](const Ref<Value>& v) { return binary(Op::CMPNE, v, v); };
  const Ref<Value> is_it =
      binary(Op::OR, binary(Op::CMPEQ, x, extreme), binary(Op::AND, is_nan(x), is_nan(extreme)));
  const Ref<Value> count = sum_over(cast_value(is_it, s.dtype()), axes);
  return select(is_it, broadcast(div(g, count), x->shape()), number(s, 0));
}

// The product of all other elements: with one 0 it is not 0 at that one alone.
Ref<Value> by_product(const StepBack& s, const Ref<Value>& g, const Sizes& axes) {
  const Ref<Value>& x = s.operand(0);
  const Ref<Value> one = number(s, 1), zero = number(s, 0);
  const Ref<Value> is_zero = binary(Op::CMPEQ, x, zero);
  const Ref<Value> zeros = broadcast(sum_over(select(is_zero, one, zero), axes), x->shape());
  const Ref<Value> without = select(is_zero, one, x);
  Sizes numbers(s.value().numbers());
  const Ref<Value> product = broadcast(
      Value::make(Op::REDUCE_AXIS, s.dtype(), s.device(), s.shape(), numbers, without), x->shape());
  const Ref<Value> others =
      select(is_zero, select(binary(Op::CMPEQ, zeros, one), product, zero),
             select(binary(Op::CMPEQ, zeros, zero), div(product, without), zero));
  return mul(broadcast(g, x->shape()), others);
}

Ref<Value> d_reduce(const StepBack& s, const Ref<Value>& g) {
  const Ints numbers = s.value().numbers();
  const Op op = Op(numbers[0]);
  const Sizes axes(numbers.subspan(1));
  if (op == Op::ADD) return broadcast(g, s.source(0).shape());
  return op == Op::MUL ? by_product(s, g, axes) : by_extreme(s, g, axes);
}

// -------------------------------------------------------------------------------------- the table

Gradients of_constant_steps(const StepBack&) { return {}; }

struct OpGradient {
  Op op;
  Gradients (*rule)(const StepBack&);
};

constexpr OpGradient kOpGradients[] = {
    {Op::CAST, of_unary<d_cast>},
    {Op::NEG, of_unary<d_neg>},
    {Op::RECIP, of_unary<d_recip>},
    {Op::SQRT, of_unary<d_sqrt>},
    {Op::EXP2, of_unary<d_exp2>},
    {Op::LOG2, of_unary<d_log2>},
    {Op::EXP, of_unary<d_exp>},
    {Op::LOG, of_unary<d_log>},
    {Op::SIN, of_unary<d_sin>},
    {Op::COS, of_unary<d_cos>},
    {Op::TRUNC, of_constant_steps},
    {Op::FLOOR, of_constant_steps},
    {Op::CEIL, of_constant_steps},
    {Op::ROUND, of_constant_steps},
    {Op::BITCAST, of_constant_steps},
    {Op::ADD, of_add},
    {Op::SUB, of_sub},
    {Op::MUL, of_mul},
    {Op::FDIV, of_fdiv},
    {Op::MAX, of_choice<Op::MAX>},
    {Op::MIN, of_choice<Op::MIN>},
    {Op::WHERE, of_where},
    {Op::RESHAPE, of_unary<d_reshape>},
    {Op::PERMUTE, of_unary<d_permute>},
    {Op::EXPAND, of_unary<d_expand>},
    {Op::PAD, of_unary<d_pad>},
    {Op::SHRINK, of_unary<d_shrink>},
    {Op::FLIP, of_unary<d_flip>},
    {Op::VIEW, of_unary<d_view>},
    {Op::CONTIGUOUS, of_unary<d_same>},
    {Op::COPY, of_unary<d_copy>},
    {Op::CONTIGUOUS_BACKWARD, of_contiguous_backward},
    {Op::REDUCE_AXIS, of_unary<d_reduce>},
    {Op::SCAN, gradients_of_scan},
    {Op::INDEX, gradients_of_gather},
    {Op::AFTER, gradients_of_write},
};

}  // namespace

Gradients gradients_of(const StepBack& step) {
  if (step.value().numel() == 0) return of_empty(step);
  const auto* const row =
      std::find_if(std::begin(kOpGradients), std::end(kOpGradients),
                   [&](const OpGradient& r) { return r.op == step.value().op(); });
  if (row == std::end(kOpGradients)) {
    throw Error(fmt::format("[gradient] {} has no gradient", name_of(step.value().op())));
  }
  Gradients by = row->rule(step);
  for (size_t i = 0; i < by.size(); i++) {
    if (!step.wants(i)) by[i] = {};
    if (by[i]) by[i] = fitted(std::move(by[i]), step.source(i).shape());
  }
  return by;
}

}  // namespace weft
