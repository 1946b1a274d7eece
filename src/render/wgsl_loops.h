// Loops for drivers that end them after so many iterations.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "ir/node.h"

namespace weft {

// How many copies of their bodies the RANGEs of a LINEAR need, so that a thread runs at most so
// many iterations of all loops: the innermost ones without barriers do several at a time. None
// where the program has few. Throws DeviceError where no number of copies is enough.
std::unordered_map<UOp, int64_t> loop_copies(UOp linear, int64_t most_iterations);

}  // namespace weft
