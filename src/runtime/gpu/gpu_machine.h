// What GPUs have in common.
#pragma once

#include <cstddef>

#include "schedule/machine.h"

namespace weft {

// With so many multiprocessors: rates are those of a data centre's GPU, for each of them.
Machine gpu_machine(size_t units);

}  // namespace weft
