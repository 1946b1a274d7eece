// The table of LLVM IR: elementwise ops as instructions.
#pragma once

#include <string_view>

#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"

namespace weft {

// An op on some dtypes as lines of IR, the last of which gives the result. `x = ...` names a step,
// which later lines call %x. $0 $1 $2 are the operands, $T the type of the last operand, $R of the
// result, $B bool in as many lanes, $I the integers of $T's width; $z $o $n $W are 0, 1, -1 and the
// width in $T; of the result's integer dtype $m is the least value, $g the greatest, $l the least
// and $h one past the greatest as $T; $w says that an integer op does not wrap where that is
// proved. A line `call f` calls the intrinsic llvm.f on all operands.
struct LlvmRow {
  OpSet ops;
  DTypeSet dtypes;
  std::string_view text;
};

// The row for an op on operands of `from`, giving `to`, and a node where it looks at constants too.
// Empty text: the value as it is. No row: none.
const LlvmRow* llvm_row(Op op, DType from, DType to);
const LlvmRow* llvm_row(UOp n);

}  // namespace weft
