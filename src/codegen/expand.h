// Loops of axis type upcast become copies of their body.
#pragma once

#include "ir/node.h"

namespace weft {

// An END over upcast ranges becomes one END for each of their places, with the other ranges, which
// are one loop again: in each iteration every copy is done, in the order of the places.
UOp expand(UOp sink);

}  // namespace weft
