// The arithmetic of one element: what every elementwise op means, bit for bit. Constant folding,
// the evaluator and the prover's tests all use this one definition, and it is total.
//
// A value travels as 64 bits in its dtype's canonical form: signed integers and index
// sign-extended, unsigned ones zero-extended, bool 0 or 1, floats as their own IEEE bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/dtype.h"
#include "ir/op.h"

namespace weft {

// `op` on elements. `type` is the dtype of the operands (for WHERE, of its last two; for CAST and
// BITCAST, of the operand, and `result` is the dtype asked for).
// Index is exact: where 64 bits overflow there is no result.
std::optional<uint64_t> evaluate_scalar(Op op, DType type, DType result,
                                        std::span<const uint64_t> operands);

// The canonical bits of a number in a dtype: integers wrap, floats round to nearest even.
uint64_t bits_of_int(DType type, int64_t value);
uint64_t bits_of_uint(DType type, uint64_t value);
uint64_t bits_of_double(DType type, double value);  // to integers: truncates and saturates

// The value as a double: exact for every float, rounded for wide integers.
double double_of_bits(DType type, uint64_t bits);

// The least and greatest values of an integer dtype, bool and index included, as canonical bits.
uint64_t least_bits(DType type);
uint64_t greatest_bits(DType type);

// The neutral element of a reduction by ADD, MUL, MAX, MIN, AND, OR or XOR.
std::optional<uint64_t> identity_bits(Op op, DType type);
// What a SCAN by this op holds between elements: sums and products of floats in a wider dtype, so
// that the error of the last one is that of a rounding.
DType scan_dtype(Op op, DType type);

// Text that reads back to the same bits: 3, -0.0, 1.5, inf, nan, nan:0x7fc00001, true.
std::string text_of_bits(DType type, uint64_t bits);
std::optional<uint64_t> parse_bits(DType type, std::string_view text);

}  // namespace weft
