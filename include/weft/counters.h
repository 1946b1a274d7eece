// What has been run.
#pragma once

#include <cstdint>

namespace weft {

struct Counters {
  uint64_t kernels = 0;  // run
  uint64_t bytes = 0;    // of their arguments
};

// Since the start of the process, or since the last reset.
Counters counters();
void reset_counters();

}  // namespace weft
