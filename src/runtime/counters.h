// Counting what runs: weft/counters.h reads it.
#pragma once

#include <cstdint>

#include "weft/counters.h"  // IWYU pragma: export

namespace weft {

void count_kernel(uint64_t bytes, uint64_t flops);

}  // namespace weft
