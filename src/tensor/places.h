// Where elements are.
#pragma once

#include <cstddef>

#include "weft/tensor.h"

namespace weft {

// 0, 1, ... along the axis, with size 1 on the others; int32, or int64 where that is needed.
Tensor places_along(const Tensor& x, size_t axis);

}  // namespace weft
