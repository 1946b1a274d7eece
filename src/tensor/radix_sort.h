// Sorting by digits, for devices whose loops run in order.
#pragma once

#include "weft/tensor.h"

namespace weft {

// The places of keys in ascending order along the last axis, as int32: equal keys stay in their
// order. Keys are uint32 or uint64. One kernel, n operations for each byte of a key: lines are
// independent, and run on several threads.
Tensor places_by_radix(const Tensor& key);

}  // namespace weft
