// Gradients of reads and writes by integers.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tensor/gradient_rules.h"
#include "tensor/operand.h"
#include "value/movement.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/view.h"

namespace weft {
namespace {

// `into`, whose elements in row-major order are the storage, with `value` written to the elements
// of the view that an index names.
Ref<Value> written(Ref<Value> into, const View& view, Ref<Value> value, Ref<Value> index,
                   Value::Scatter how) {
  Sizes numbers = view.shape;
  numbers.append(view.strides);
  numbers.push_back(view.offset);
  for (const int64_t n : {how.first, how.past, int64_t(how.op)}) numbers.push_back(n);
  Device& device = into->device();
  const DType dtype = into->dtype();
  const Sizes shape(into->shape());
  return Value::make(Op::AFTER, dtype, device, shape, numbers, std::move(into), std::move(value),
                     std::move(index));
}

Ref<Value> zeros(Device& device, DType dtype, Ints shape) {
  return broadcast(wrapped_constant(device, dtype, 0.0), shape);
}

Sizes chosen_shape(Ints shape, const Value::Scatter& how, const Ref<Value>& index) {
  Sizes out(shape.subspan(0, size_t(how.first)));
  out.append(index->shape());
  out.append(shape.subspan(size_t(how.past)));
  return out;
}

// Elements of a view of g that an index names.
Ref<Value> chosen(const Ref<Value>& g, const View& view, const Ref<Value>& index,
                  const Value::Scatter& how) {
  Ref<Value> part = view_of(g, view);
  if (!index) return part;
  return Value::make(Op::INDEX, g->dtype(), g->device(), chosen_shape(view.shape, how, index),
                     {how.first, how.past}, part, index);
}

}  // namespace

// Every read adds to what it read. Narrow floats are added up in float32.
Gradients gradients_of_gather(const StepBack& step) {
  const Value& from = step.source(0);
  const Ints axes = step.value().numbers();
  const DType dtype = step.dtype(), sums = dtype.bits() < 32 ? dtypes::float32 : dtype;
  Ref<Value> sum = written(zeros(step.device(), sums, from.shape()),
                           contiguous_view(sums, from.shape()), cast_value(step.gradient(), sums),
                           step.operand(1), {.first = axes[0], .past = axes[1], .op = Op::ADD});
  return {cast_value(std::move(sum), dtype)};
}

namespace {

// Of elements at one place the last one was written: numbers written there and read back say which.
Ref<Value> last_at(const StepBack& step, const View& view, const Ref<Value>& index,
                   const Value::Scatter& how) {
  const DType counter = dtypes::int64;
  const Sizes shape = chosen_shape(view.shape, how, index);
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  const Ref<Value> places = reshaped(Value::make(Op::IOTA, counter, step.device(), {count}), shape);
  const Ref<Value> none =
      broadcast(wrapped_constant(step.device(), counter, int64_t(-1)), step.shape());
  View as_numbers = view;
  as_numbers.dtype = counter;
  const Ref<Value> last = written(none, as_numbers, places, index, {how.first, how.past, Op{}});
  return apply(Op::CMPEQ, dtypes::bool_, shape, chosen(last, as_numbers, index, how), places);
}

// A write that combines by an op other than ADD, with the data that its gradient reads.
class Combined {
 public:
  explicit Combined(const StepBack& step)
      : step_(step),
        how_(*step.value().scatter()),
        view_(step.value().written()),
        index_(step.value().has_index() ? step.operand(2) : Ref<Value>()),
        shape_(index_ ? chosen_shape(view_.shape, how_, index_) : view_.shape),
        old_(step.operand(0)),
        value_(broadcast(step.operand(1), shape_)),
        zero_(wrapped_constant(step.device(), step.dtype(), 0.0)),
        one_(wrapped_constant(step.device(), step.dtype(), 1.0)) {}

  // The largest, or smallest, share it.
  Gradients by_choice() const {
    const Ref<Value> is_old = both(Op::CMPEQ, old_, step_.result());
    const Ref<Value> is_value = both(Op::CMPEQ, value_, at(step_.result()));
    const Ref<Value> count =
        combined(Op::ADD, select(is_old, one_, zero_), select(is_value, one_, zero_));
    const Ref<Value> share = both(Op::FDIV, step_.gradient(), count);
    return {select(is_old, share, zero_), select(is_value, at(share), zero_)};
  }

  // The product of all others at the place: with one 0 it is not 0 at that one alone.
  Gradients by_product() const {
    const Ref<Value>& g = step_.gradient();
    const Ref<Value> old = select(both(Op::CMPEQ, old_, zero_), one_, old_);
    const Ref<Value> by_old = both(Op::FDIV, both(Op::MUL, g, combined(Op::MUL, old, value_)), old);
    const Ref<Value> is_zero = both(Op::CMPEQ, value_, zero_);
    const Ref<Value> zeros =
        combined(Op::ADD, broadcast(zero_, step_.shape()), select(is_zero, one_, zero_));
    const Ref<Value> is_only = both(Op::AND, is_zero, both(Op::CMPEQ, at(zeros), one_));
    const Ref<Value> others = combined(Op::MUL, old_, select(is_only, one_, value_));
    const Ref<Value> quotient =
        both(Op::FDIV, at(both(Op::MUL, g, step_.result())), select(is_zero, one_, value_));
    return {by_old, select(is_only, at(both(Op::MUL, g, others)), quotient)};
  }

 private:
  static Ref<Value> both(Op op, const Ref<Value>& a, const Ref<Value>& b) {
    const Sizes shape(a->shape().empty() ? b->shape() : a->shape());
    return apply(op, yields_bool(op) ? dtypes::bool_ : a->dtype(), shape, a, b);
  }
  static Ref<Value> select(const Ref<Value>& condition, const Ref<Value>& a, const Ref<Value>& b) {
    return apply(Op::WHERE, a->dtype(), condition->shape(), condition, a, b);
  }
  Ref<Value> at(const Ref<Value>& x) const { return chosen(x, view_, index_, how_); }
  Ref<Value> combined(Op op, Ref<Value> into, Ref<Value> value) const {
    return written(std::move(into), view_, std::move(value), index_, {how_.first, how_.past, op});
  }

  const StepBack& step_;
  Value::Scatter how_;
  View view_;
  Ref<Value> index_;
  Sizes shape_;
  Ref<Value> old_, value_, zero_, one_;
};

}  // namespace

Gradients gradients_of_scatter(const StepBack& step) {
  const Value& write = step.value();
  const Value::Scatter how = *write.scatter();
  const View view = write.written();
  const Ref<Value>& g = step.gradient();
  if (how.combines() && how.op != Op::ADD) {
    return how.op == Op::MUL ? Combined(step).by_product() : Combined(step).by_choice();
  }
  const bool has_index = write.has_index();
  const Ref<Value> index = has_index ? step.operand(2) : Ref<Value>();
  Gradients by;
  if (how.combines()) {
    by[0] = g;
    if (step.wants(1)) by[1] = chosen(g, view, index, how);
    return by;
  }
  const Ref<Value> zero = wrapped_constant(step.device(), step.dtype(), 0.0);
  if (step.wants(0)) by[0] = written(g, view, zero, index, how);
  if (step.wants(1)) {
    const Sizes shape = chosen_shape(view.shape, how, index);
    by[1] = apply(Op::WHERE, step.dtype(), shape, last_at(step, view, index, how),
                  chosen(g, view, index, how), zero);
  }
  return by;
}

}  // namespace weft
