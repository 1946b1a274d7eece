// Types and constants of LLVM IR.
#pragma once

#include <cstdint>
#include <string>

#include "ir/dtype.h"

namespace weft::llvm_text {

std::string type(DType t);    // "<16 x float>"; what has no arithmetic is held as integers
std::string suffix(DType t);  // in the names of intrinsics: "v16f32"

// In memory: a bool is a byte.
DType stored(DType t);
DType integer_of_width(DType t);

// A constant, in every lane.
std::string literal(DType t, uint64_t bits);

}  // namespace weft::llvm_text
