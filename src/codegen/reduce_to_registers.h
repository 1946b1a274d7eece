// REDUCE becomes a register that is written in a loop.
#pragma once

#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// REDUCE(x, ranges...) becomes
//   init = STORE(AFTER(reg, loops around), identity)
//   body = STORE(AFTER(reg, init, ranges), AFTER(reg, init, ranges) op x)
//   AFTER(reg, END(body, ranges))
// By axis type: a reduce range is a loop; an unroll range is taken in its order inside of the body;
// a group_reduce range has a register for each of its places, combined in pairs at the end; a lane
// range stays behind as a REDUCE of the register over lanes. The sum of products is a fused
// multiply-add where the target has one.
UOp reduce_to_registers(UOp sink, const Target& target);

// Combined in pairs, neighbours first: ((a op b) op (c op d)) op e.
UOp combine_in_pairs(Op op, std::span<const UOp> values);

}  // namespace weft
