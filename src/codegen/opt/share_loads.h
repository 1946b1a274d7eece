// Reads of an argument through memory that a workgroup shares.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/node.h"

namespace weft {

// The LOADs of DEFINE_GLOBAL `argument` in the scope of the range that can be shared: each in loops
// of constant size inside of the range, and in threads of a workgroup, none of which sums up a
// reduction.
std::vector<UOp> loads_to_share(UOp sink, int64_t argument, UOp range);

// What a workgroup reads of them in one iteration of the range is copied to local memory first, in
// the order of the argument's own memory, each thread of the group a part of it.
UOp share_loads(UOp sink, int64_t argument, UOp range);

}  // namespace weft
