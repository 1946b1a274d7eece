// Movement ops on Values.
#include "value/movement.h"

#include <span>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "value/factor.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/view.h"

namespace weft {
namespace {

Ref<Value> move_once(Op op, Ref<Value> x, Ints shape, Ints numbers = {}) {
  const DType dtype = x->dtype();
  Device& device = x->device();
  return Value::make(op, dtype, device, shape, numbers, std::move(x));
}

}  // namespace

Ref<Value> moved(Ref<Value> x, std::span<const Movement> steps) {
  for (const Movement& step : steps) x = move_once(step.op, std::move(x), step.shape, step.numbers);
  return x;
}

Ref<Value> view_of(Ref<Value> x, const View& view) {
  if (view.offset == 0 && equal(view.shape, x->shape()) && is_contiguous(view)) return x;
  if (view.numel() == 0) return move_once(Op::BUFFER, std::move(x), view.shape);
  const std::vector<Movement> steps = factor(view, x->shape());
  return moved(std::move(x), steps);
}

Ref<Value> reshaped(Ref<Value> x, Ints shape) {
  if (equal(x->shape(), shape)) return x;
  return move_once(Op::RESHAPE, std::move(x), shape);
}

Ref<Value> broadcast(Ref<Value> x, Ints shape) {
  if (equal(x->shape(), shape)) return x;
  Sizes padded(shape.size() - x->shape().size(), 1);
  padded.append(x->shape());
  x = reshaped(std::move(x), padded);
  if (equal(padded, shape)) return x;
  return move_once(Op::EXPAND, std::move(x), shape);
}

Ref<Value> bits_as(Ref<Value> x, DType dtype) {
  if (x->dtype() == dtype) return x;
  const Sizes shape(x->shape());
  Device& device = x->device();
  return Value::make(Op::BITCAST, dtype, device, shape, {}, std::move(x));
}

Ref<Value> detached(Ref<Value> x) {
  const Sizes shape(x->shape());
  return move_once(Op::DETACH, std::move(x), shape);
}

}  // namespace weft
