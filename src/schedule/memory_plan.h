// Which buffers of a schedule share memory.
#pragma once

#include <cstdint>
#include <span>

#include "schedule/schedule.h"

namespace weft {

// Gives every buffer its slot. Temporaries whose lifetimes do not meet share one; an output takes
// over the memory of an input that dies (its id is in `dying`) when the kernel that writes it reads
// that input last, and only at the element that it writes. The rest have slots of their own.
void plan_memory(Schedule& schedule, std::span<const int64_t> dying);

}  // namespace weft
