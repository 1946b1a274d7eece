// What the operations of tensors share: reading tensors as Values, and Values as new tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "value/storage.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

// What the tensor sees now.
Ref<Value> read(const Tensor& x);
// A new tensor. Past the bound on pending values it is realised at once.
Tensor tensor_of(Ref<Value> value);
// Realises the storage when more values are pending, or more bytes pinned, than is allowed.
void keep_bound(Storage& storage);

// A number of a program in a dtype. Throws DTypeError that names `what` when it is no value of it.
Ref<Value> constant_value(std::string_view what, Device& device, DType dtype, Number number);
// The same; integers wrap.
Ref<Value> wrapped_constant(Device& device, DType dtype, Number number);
// A scalar where it is one, else of this shape.
Ref<Value> full_value(std::string_view what, Device& device, DType dtype, Ints shape,
                      Number number);
Ref<Value> cast_value(Ref<Value> x, DType dtype);
// Elementwise, of operands of one dtype, each of this shape or a scalar.
Ref<Value> apply(Op op, DType dtype, Ints shape, Ref<Value> a, Ref<Value> b = {},
                 Ref<Value> c = {});

// The shape that both broadcast to. Throws ShapeError, also when it has too many elements.
Sizes broadcast_shapes(std::string_view what, Ints a, Ints b);
// A scalar stays one; all else gets this shape.
Ref<Value> as_operand(Ref<Value> x, Ints shape);

Device& device_of(const Tensor& x);
// Throws DeviceError, which names both.
void check_same_device(std::string_view what, const Tensor& a, const Tensor& b);
// Counts from the end when it is negative. Throws IndexError.
size_t axis_of(std::string_view what, int64_t axis, size_t rank);
// The number of elements. Throws ShapeError on a negative size, or more than 63 bits count, sign
// included.
int64_t checked_numel(std::string_view what, Ints shape);

std::string text_of_shape(Ints shape);  // "(2,3)"

}  // namespace weft
