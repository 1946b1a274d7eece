// All places of some loops of constant size.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ir/node.h"

namespace weft {

// Every RANGE with its constant.
using RangePlace = std::vector<std::pair<UOp, UOp>>;

// In row-major order: the last range runs fastest. Of no ranges: one place, which is empty. Throws
// CompileError when a size is not constant.
std::vector<RangePlace> places_of(std::span<const UOp> ranges);

// The ranges of an axis type among the sources of n that follow the first.
std::vector<UOp> ranges_with(UOp n, AxisType axis);

}  // namespace weft
