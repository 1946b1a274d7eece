// Gradients of reads and writes by integers.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
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
  const Ref<Value> part = view_of(g, view);
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

}  // namespace

Gradients gradients_of_scatter(const StepBack& step) {
  const Value& write = step.value();
  const Value::Scatter how = *write.scatter();
  const View view = write.written();
  const Ref<Value>& g = step.gradient();
  if (how.combines() && how.op != Op::ADD) {
    throw Error(
        fmt::format("[gradient] a write that combines by {} has no gradient", name_of(how.op)));
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
