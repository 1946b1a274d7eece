// Long sums of floats become sums of sums.
#pragma once

#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// REDUCE(ADD, x, r) of floats over a long loop r becomes
//   REDUCE(ADD, REDUCE(ADD, x, inner), outer)   with outer * block + inner for r in x
// and so on until no loop has more than a block of steps: the error of n additions in a row grows
// with n, that of sums of blocks with log n. Each addition of a block is one for a whole block of
// steps. Every other reduction over r has the same two loops. Sizes that no block divides end in a
// shorter one. A loop that sizes of other loops depend on stays whole.
UOp sum_in_blocks(UOp sink, const Target& target);

}  // namespace weft
