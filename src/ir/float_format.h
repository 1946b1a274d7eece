// Float formats: between their bits and double, with one rounding to nearest even.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace weft {

uint64_t float_bits_of_double(DType type, double value);
double double_of_float_bits(DType type, uint64_t bits);

// Straight from the integer: a 64-bit integer through a double would be rounded twice.
uint64_t float_bits_of_int(DType type, int64_t value);
uint64_t float_bits_of_uint(DType type, uint64_t value);

// a * b + c for operands of `type`, to be rounded to `type` by the caller without a second error.
double fused_multiply_add(DType type, double a, double b, double c);

// The infinity of this sign, or the largest number of a format that has none.
uint64_t lowest_float_bits(DType type, double infinity);

}  // namespace weft
