// Tensors that are put in memory where they are made.
#pragma once

#include "tensor/operand.h"
#include "value/value.h"
#include "weft/tensor.h"

namespace weft {

// In memory of its own: what reads it does not compute it again.
inline Tensor stored(const Tensor& x) {
  const Ref<Value> value = read(x);
  return tensor_of(Value::make(Op::CONTIGUOUS, x.dtype(), device_of(x), x.shape(), {}, value));
}

}  // namespace weft
