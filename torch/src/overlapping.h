// Writes to tensors that have an element of memory more than once: expanded ones, windows.
#pragma once

#include <ATen/core/TensorBase.h>

#include "base/ref.h"
#include "tensor/chosen.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {

// A value for an expanded view as one for without_expanded_axes(view). Throws what PyTorch's
// kernels throw unless it has one number for all elements that are one of memory.
Ref<Value> for_each_once(Ref<Value> value, const View& view);

// put(), one element after the other: of those that are one of memory the last counts.
void put_in_order(const at::TensorBase& tensor, const weft::Tensor& value);

// `value` where the mask holds. What the tensor has elsewhere stays, and is not written again: of
// several elements that are one of memory, the last that is written counts.
void put_where(const at::TensorBase& tensor, const weft::Tensor& mask, const weft::Tensor& value);

// The same places as ones of memory where the target is expanded.
Chosen in_memory(Chosen places);

}  // namespace weft::pytorch
