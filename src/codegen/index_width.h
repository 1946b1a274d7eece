// Integers get a width.
#pragma once

#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// Scalars of dtype index become int64. Vectors of them become int32 where all values of all of them
// fit, else int64. On a target with narrow indices all become int32 where the values of all fit.
UOp index_width(UOp sink, const Target& target = {});

}  // namespace weft
