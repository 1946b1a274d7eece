// Where elements are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/tensor.h"

namespace weft {

// 0, 1, ... along the axis, with size 1 on the others; int32, or int64 where that is needed.
Tensor places_along(const Tensor& x, size_t axis);

// About how many Values the order of a row of so many elements is made of (sort.cpp).
int64_t values_of_order(int64_t count);

// Along an axis, where the element of a rank is that is given for each row, with size 1 there: as
// in the stable ascending order.
Tensor place_of_rank(const Tensor& x, int64_t axis, const Tensor& rank);

}  // namespace weft
