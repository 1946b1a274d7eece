// Which expressions read memory: an index that does is known only when the program runs.
#pragma once

#include <cstdint>

#include "ir/node.h"

namespace weft {

enum class Reads : uint8_t {
  kNothing,  // loops, variables and constants alone
  kBuffers,  // elements of BUFFERs, which nothing in the graph computes
  kMemory,   // what other parts of the graph compute, or hold in a register
};

// Computed once per node; what lies beneath memory is not looked at.
Reads reads_of(UOp n);

inline bool reads_memory(UOp n) { return reads_of(n) != Reads::kNothing; }

// INDEX(x, indices...) of a tensor graph, by integers that it computes: one element for each of
// them.
bool is_gather(UOp n);

}  // namespace weft
