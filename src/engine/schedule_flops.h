// The arithmetic of schedules, counted once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/schedule.h"

namespace weft {

// kernel_flops of every call. Remembered as long as the schedule lives. The lock of realise is
// held.
std::shared_ptr<const std::vector<uint64_t>> flops_of(
    const std::shared_ptr<const Schedule>& schedule);

}  // namespace weft
