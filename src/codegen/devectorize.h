// Vectors taken apart, for targets that only load and store them.
#pragma once

#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// On a target without arithmetic on vectors, every lane is computed by itself. What is left of
// vectors are LOADs of them, each lane taken by a GEP, and STOREs of a VECTORIZE: of at most the
// target's bytes, at an index that is a multiple of their lanes, with a gate that is the same for
// all; and the sums of WMMAs, whole.
UOp devectorize(UOp sink, const Target& target);

}  // namespace weft
