// The table of Triton: elementwise ops as expressions.
#pragma once

#include <string_view>

#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"

namespace weft {

// An op on some dtypes as an expression of Triton's Python. $0 $1 $2 are the operands, $T is the
// type of the result, $S that of the last operand, $I the unsigned integers of its width, $W the
// width, $M the width - 1, $s the sign bit, $A all bits of the operand's dtype; of the result's
// integer dtype $m is the least value and $g the greatest, $l the least and $h one past the
// greatest as floats.
struct TritonRow {
  OpSet ops;
  DTypeSet dtypes;
  std::string_view text;
};

// Empty text: the value as it is. Null: there is none.
const TritonRow* triton_row(UOp n);

// A CAST in one step; between float16 and what is not there, there are two, by way of float32.
const TritonRow* triton_cast(DType from, DType to);

}  // namespace weft
