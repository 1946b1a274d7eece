// Which steps of a loop program may run side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/roll/loop_bodies.h"

namespace weft {

// The level of each step, from 0 on: one more than that of any earlier step which writes what it
// touches, or reads what it writes. So the steps of one level can run in any order, after those of
// all levels below. None where that would take too long to find, or sizes differ from step to step.
std::optional<std::vector<uint32_t>> step_levels(const LoopProgram& program);

}  // namespace weft
