// Writes in place that would overwrite what they still have to read.
#pragma once

#include "ir/node.h"

namespace weft {

// A write whose value reads the memory that the same version's writes change gets its value stored
// first, unless every such read is of the very element that the same iteration writes, or of a part
// of the memory that no write touches. So no iteration reads what another one overwrites.
UOp stage_hazards(UOp sink);

}  // namespace weft
