// Writes to places that memory tells, shared out by place.
#pragma once

#include <cstdint>
#include <string>

#include "ir/node.h"

namespace weft {

// A loop whose iterations write to elements in an order that matters, as an index repeats, is gone
// through by `amount` owners side by side. Each element has one owner, who does what is written to
// it, in order, and reads what that takes; the others pass over it. The owners are a new outermost
// loop of axis type global, with this id.
UOp shard_writes(UOp sink, UOp range, int64_t amount, int64_t id);

// Why that cannot be done; empty: it can.
std::string why_not_shard(UOp sink, UOp range, int64_t amount);

// Whether the range is a loop of owners: its places write to the same elements, one each.
bool is_loop_of_owners(UOp sink, UOp range);

}  // namespace weft
