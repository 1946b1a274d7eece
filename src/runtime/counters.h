// Counting what runs: weft/counters.h reads it.
#pragma once

#include <cstdint>

#include "weft/counters.h"  // IWYU pragma: export

namespace weft {

void count_kernels(uint64_t kernels, uint64_t bytes);

}  // namespace weft
