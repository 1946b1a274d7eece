// How many kernels must run before a stored value can be computed.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "schedule/rangeify/stored_values.h"
#include "schedule/schedule.h"

namespace weft {

// Values of one level and the same loops can share a kernel, because neither waits for the other.
// A value that reads another one only at its own place, in the same iteration, may be of the same
// level: then they must share one, and the second uses the value instead of the memory.
// A value that may be stored counts as if it were not.
struct Levels {
  std::vector<uint32_t> of;  // one per stored value
  // Of value k: stored values that it uses in the same iteration.
  std::vector<std::vector<uint32_t>> together;
};
Levels find_levels(const std::vector<StoredValue>& values, Arena& arena,
                   const KernelLimits& limits);

// `read` is of the element of the BUFFERIZE `stored` that its own loops compute.
bool reads_own_place(UOp read, UOp stored);

bool has_same_loops(const StoredValue& a, const StoredValue& b);

}  // namespace weft
