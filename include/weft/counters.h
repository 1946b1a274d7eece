// What has been run.
#pragma once

#include <cstdint>

namespace weft {

struct Counters {
  uint64_t kernels = 0;  // run
  uint64_t bytes = 0;    // of their arguments
  // Elementwise operations on data: an addition is 1, a division or square root 4, an exponential,
  // logarithm, sine or integer division 8; a reduction is one operation per element.
  uint64_t flops = 0;
  uint64_t schedules = 0;  // made, or read from disk, where no known one served
};

// Since the start of the process, or since the last reset.
Counters counters();
void reset_counters();

// What lives now: results of operations, computed or not, and the bytes that tensors and what they
// are computed from hold in memory.
struct Live {
  int64_t values = 0;
  int64_t bytes = 0;
};
Live live();

}  // namespace weft
