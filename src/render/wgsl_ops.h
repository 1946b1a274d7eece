// The table of WGSL: elementwise ops on scalars as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/node.h"

namespace weft {

// What a scalar is in an expression. Small integers are held in i32 and u32, extended; narrow
// floats as their bits in u32; 64-bit integers in vec2<u32>.
std::string wgsl_type(DType type);

std::string wgsl_constant(DType type, uint64_t bits);

// The op of n on one lane of its operands, each of which binds as tightly as a name; n's dtypes may
// be vectors. Empty where WGSL has no text for it. `fused`: fma() rounds once.
enum class Fused : bool { kNo, kYes };
std::string wgsl_expression(UOp n, const std::vector<std::string>& operands, Fused fused);

}  // namespace weft
