// Counting what runs: weft/counters.h reads it.
#pragma once

#include <cstdint>

#include "weft/counters.h"  // IWYU pragma: export

namespace weft {

void count_schedule();
void count_lowered();
void count_compiled();
void count_kernel(uint64_t bytes, uint64_t flops);
void count_live_value(int64_t sign) noexcept;
void count_live_bytes(int64_t bytes) noexcept;

}  // namespace weft
