// Sorting by digits, for devices whose loops run in order.
#pragma once

#include <cstdint>

#include "weft/tensor.h"

namespace weft {

// The places of keys in ascending order along the last axis, as int32: equal keys stay in their
// order. Keys are uint32 or uint64. One kernel, n operations for each byte of a key: lines are
// independent, and run on several threads.
Tensor places_by_radix(const Tensor& key);

// Whether the first ones of all are few enough to be found without sorting all.
bool is_selection(const Tensor& key, int64_t first);
// The first of them, where that holds: they lie in the blocks with the least least elements. About
// one pass over the keys.
Tensor first_places_by_radix(const Tensor& key, int64_t first);

// Whether the element of one rank is found by counting: about 40 passes over a line in a cache.
bool is_counted_rank(const Tensor& key);
// The place of the element of a rank, one for each line, along the last axis: int32.
Tensor place_of_rank_by_counting(const Tensor& key, const Tensor& rank);

}  // namespace weft
