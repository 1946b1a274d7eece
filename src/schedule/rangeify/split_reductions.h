// Reductions to very few results, in pieces.
#pragma once

#include <cstddef>

#include "ir/node.h"

namespace weft {

// A large REDUCE_AXIS to fewer results than `pieces` runs in one thread, however many there are. It
// is done in two steps: one of its axes, or a part of its only axis, stays in the first, whose
// results are stored, and is reduced by the second. So is one whose results lie side by side in
// memory, if they are fewer than the `iterations` that keep the device busy; 0: one for each
// thread. The order in which floats are summed changes by it.
UOp split_reductions(UOp sink, size_t pieces, size_t iterations = 0);

}  // namespace weft
