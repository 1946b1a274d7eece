// What compositions of tensors share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device.h"
#include "weft/tensor.h"

namespace weft {

// 0, 1, ... size - 1 along one axis of `rank`, whose other sizes are 1: int32, or int64 past it.
Tensor positions(Device& device, int64_t size, size_t axis = 0, size_t rank = 1);

// 0 in any dtype: a weak number of the lowest kind.
inline const Number kNothing = false;

}  // namespace weft
