// Computes what storages hold.
#pragma once

#include <cstddef>
#include <span>

#include "value/storage.h"

namespace weft {

// The versions of these storages, together, one schedule per device. Afterwards each is in memory,
// and so is the version of every other Storage that had to be computed on the way. Scheduled and
// allocated before anything runs: an error before that changes nothing. Threads wait for each
// other; what one has realised the next finds done.
void realize(std::span<Storage* const> storages);

// The kernels that this would run now.
size_t kernels_to_realize(std::span<Storage* const> storages);

}  // namespace weft
