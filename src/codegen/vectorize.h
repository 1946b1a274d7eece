// Loops of axis type lane become vectors.
#pragma once

#include "ir/node.h"

namespace weft {

// What stands in the scope of a lane range becomes a vector with a lane for each of its places: a
// read or write of neighbouring elements is one of a vector, others are done lane by lane; a
// register becomes a vector of registers; a REDUCE over the range combines halves, until one lane
// is left. No node may stand in two lane ranges; the size of each is a power of two.
UOp vectorize(UOp sink);

}  // namespace weft
