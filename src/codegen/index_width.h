// Integers get a width.
#pragma once

#include "ir/node.h"

namespace weft {

// Scalars of dtype index become int64. Vectors of them become int32 where all values of all of them
// fit, else int64.
UOp index_width(UOp sink);

}  // namespace weft
