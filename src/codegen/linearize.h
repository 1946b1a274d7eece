// A kernel as a list.
#pragma once

#include "ir/node.h"

namespace weft {

// The nodes of a kernel in the order in which a program runs them: a LINEAR. Every RANGE is one
// loop around all that stands in its scope, every node is in the outermost loop that it can be in.
// Inside of a loop, an effect comes after what it needs, as late as that allows, so that few values
// are alive; a read comes before the writes to the same memory that it does not stand AFTER.
UOp linearize(UOp sink);

}  // namespace weft
