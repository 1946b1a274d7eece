// What is known of integers before they are computed.
#pragma once

#include "ir/bounds.h"
#include "value/value.h"

namespace weft {

// Bounds of all elements of a Value of integers, from the operations that it is computed by: never
// too narrow. What is in memory may be anything of its dtype. Looks at a bounded number of Values.
Interval element_bounds(const Value& value);

}  // namespace weft
