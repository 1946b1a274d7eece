// Writes of neighbours become writes of vectors.
#pragma once

#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// STOREs of single lanes of vectors (or constants) into elements that follow each other, of one
// memory and in the same loops, become one STORE of a vector made of those lanes: vectors that are
// written interleaved, or a block that is written along the other axis, are put in order in
// registers first. Not on targets that only load and store vectors: those want them aligned.
UOp widen_stores(UOp sink, const Target& target);

}  // namespace weft
