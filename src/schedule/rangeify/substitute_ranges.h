// A value at other indices.
#pragma once

#include <span>

#include "ir/node.h"

namespace weft {

// `value` with every range of its scope replaced by the index beside it; `ranges` may hold constant
// indices of axes of size 1, which stay. What does not depend on the ranges is left alone: also
// stored values below, which have ranges of the same name. IndexList come out simplified.
UOp substitute_ranges(UOp value, std::span<const UOp> ranges, std::span<const UOp> at);

}  // namespace weft
