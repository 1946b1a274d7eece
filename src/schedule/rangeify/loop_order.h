// In which order the loops of a stored value run.
#pragma once

#include <span>
#include <vector>

#include "ir/node.h"
#include "schedule/rangeify/stored_values.h"

namespace weft {

using RangeSet = std::vector<UOp>;

bool has_range(std::span<const UOp> set, UOp range);
bool is_subset(std::span<const UOp> a, std::span<const UOp> b);

// The RANGEs among the indices of a BUFFERIZE, or of an END.
std::vector<UOp> loops_of(std::span<const UOp> ranges);

// Of loops, outermost first: those around what depends on `used`.
std::span<const UOp> up_to_last(std::span<const UOp> loops, std::span<const UOp> used);

// The loops with those first that are in most of the sets `around`: where of any two sets one has
// all of the other, each of them is then the outermost loops. Else in their own order.
std::vector<UOp> order_loops(std::span<const UOp> loops, std::span<const RangeSet> around);

// Of the reductions under `value` that run in some of the loops only: those loops.
std::vector<RangeSet> loops_around_reductions(UOp value, std::span<const UOp> loops);

}  // namespace weft
