// Iterations of a loop that go through the statements in it together.
#pragma once

#include <cstdint>
#include <string>

#include "ir/node.h"

namespace weft {

// `amount` iterations of a free loop, in which local memory is filled, become one iteration: local
// memory has a copy of what it holds for each of them, and each write to it a loop over them, with
// ids from `id` on. Loops around such writes run once for all of them. Where the last ones do not
// fill a block, the last iteration is done again in their place, but for its writes to arguments.
UOp block_rows(UOp sink, UOp range, int64_t amount, int64_t id);

// Why that cannot be done; empty: it can.
std::string why_not_block(UOp sink, UOp range, int64_t amount);

// Whether local memory goes from one iteration of a loop of the kernel to the next.
bool carries_local_memory(UOp sink);

}  // namespace weft
