// Reads through local memory.
#pragma once

#include <cstdint>

#include "ir/node.h"

namespace weft {

// Every LOAD of the argument that stands in the range, and in ranges of constant size inside of it,
// is read from local memory, which is filled once in each iteration of the range: packed, in the
// order in which its loops run, so that neighbouring reads are neighbours in memory. What is made
// of a read and constants alone is computed when memory is filled.
UOp stage_loads(UOp sink, int64_t argument, UOp range);

// The LOADs that it would stage.
std::vector<UOp> loads_to_stage(UOp sink, int64_t argument, UOp range);

}  // namespace weft
