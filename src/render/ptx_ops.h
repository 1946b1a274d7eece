// The table of PTX: elementwise ops as instructions.
#pragma once

#include <string_view>
#include <vector>

#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"

namespace weft {

// An op on some dtypes as instructions, the last of which writes $d. $0 $1 $2 are the operands, $t
// is the type of the last operand in registers (s32, u64, f32), $b its bits (b32), $r the type of
// the result, $w that of its dtype (s8); $W is the width of the operand's dtype, $s its sign bit,
// $z its zero, $m and $g the least and the greatest value of the result's integer dtype. %p %q are
// predicates of the row's own, %x %y registers like the last operand's, %z one like the result's;
// %n has 32 bits, %l 64, %h 16; %f is a float32, %e a float64.
//
// Integers narrower than 32 bits are held in registers of 32, extended by their sign or by zeros;
// `wraps` says that the result has to be extended anew.
struct PtxRow {
  OpSet ops;
  DTypeSet dtypes;
  std::string_view text;
  bool wraps = false;
};

// The row for an elementwise op that is no cast; it looks at constants too. Null: there is none.
const PtxRow* ptx_row(UOp n);

// The row for a BITCAST, or for a CAST in one step; an empty text leaves the register as it is.
const PtxRow* ptx_bitcast(DType from, DType to);
const PtxRow* ptx_cast(DType from, DType to);

// The dtypes that a CAST passes through, `to` included: each step has a row, and only one of them
// rounds.
std::vector<DType> ptx_cast_path(DType from, DType to);

}  // namespace weft
