// Random numbers as formulas of random bits: blocks of 64, in uint64 (generator.h).
#pragma once

#include <cstdint>

#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

// Blocks in this shape, of a state: uint64 of shape (2), the key and the counter. Block i is
// THREEFRY(counter + i, key).
Tensor blocks_of(const Tensor& state, Ints shape);

// From 0 to below 1, in a float dtype: as many digits as it has.
Tensor units_of(const Tensor& blocks, DType dtype);

// The shape of the blocks that make normal numbers of a shape: two for each of float64, on a new
// first axis.
Sizes normal_blocks(Ints shape, DType dtype);
// Of mean 0 and variance 1.
Tensor normals_of(const Tensor& blocks, DType dtype);

// low, low + 1, ... low + count - 1 with equal chances, in int64; a count of 0 is 2^64.
Tensor integers_of(const Tensor& blocks, int64_t low, uint64_t count);

// Indices along the last axis, int32, each as likely as its weight: one for every unit, of shape
// (..., count), or `count` different ones, by units in the shape of the weights.
Tensor chosen_with_replacement(const Tensor& weights, const Tensor& units);
Tensor chosen_without_replacement(const Tensor& weights, const Tensor& units, int64_t count);

}  // namespace weft
