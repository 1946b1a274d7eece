// Which dtype an operation has: PyTorch's lattice, with numbers that are weak.
#pragma once

#include <string_view>

#include "ir/dtype.h"
#include "ir/op.h"
#include "weft/tensor.h"

namespace weft {

// The dtype that two tensors meet in. Throws DTypeError for uint64 with a signed integer, which no
// integer dtype holds both of.
DType promote(std::string_view what, DType a, DType b);
// The dtype that a tensor meets a number in: its own, unless the number is of a higher kind.
DType promote(DType tensor, Number number);
// What Python's floats and ints are, and what is made or computed of them where no dtype is given:
// float32 and int32, until another is set, for all threads.
DType default_float();
DType default_int();
void set_default_float(DType dtype);
void set_default_int(DType dtype);

// bool, or one of these two.
DType dtype_of_number(Number number);
// The canonical bits of a number in a dtype. Integers wrap.
uint64_t bits_of_number(DType dtype, Number number);

// Where a number lies. bool and floats take any; an integer dtype takes those that it holds once
// they are truncated.
enum class Fit : uint8_t { kFits, kBelow, kAbove, kNaN };
Fit fit_of(DType dtype, Number number);
// Throws DTypeError that names `what`, the number and the dtype when it does not fit.
void check_fits(std::string_view what, DType dtype, Number number);

// Throws DTypeError that names `what` for one that no tensor has.
void check_element_dtype(const char* what, DType dtype);

// The dtype that operands which have met in `type` are cast to before `op`. Throws DTypeError,
// naming the op, where it is not defined on it.
DType operand_dtype(Op op, DType type);
// The dtype in which `op` reduces elements of `type`, and that of the result.
struct ReducedDTypes {
  DType accumulator, result;
};
ReducedDTypes reduced_dtypes(Op op, DType type);

}  // namespace weft
