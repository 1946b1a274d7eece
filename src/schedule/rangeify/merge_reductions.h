// Between phases 3 and 4: reductions that depend on each other, over equal ranges -> one pass.
#pragma once

#include "ir/node.h"
#include "schedule/schedule.h"

namespace weft {

// The graph with groups of reductions (maximum and sum of exponentials, mean and squared
// deviations, these and a product with their results) done in one serial loop over blocks of the
// range that they share (block_loops), where that takes less time by `bound`: what is stored
// between them, for each place of the range, is then never stored in full.
UOp merge_reductions(UOp sink, const KernelLimits& limits);

}  // namespace weft
