// The bits of a Value as elements of another width.
#pragma once

#include "base/ref.h"
#include "value/value.h"

namespace weft::pytorch {

// A vector of unsigned integers of so many bytes each, in the order of memory (little-endian). What
// is missing of the last one is 0.
Ref<Value> with_width(const Ref<Value>& value, int bytes);

}  // namespace weft::pytorch
