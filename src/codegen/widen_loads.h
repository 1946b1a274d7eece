// Reads of neighbours become reads of vectors.
#pragma once

#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// LOADs that are the lanes of vectors, made one by one, are gathered by where they lie: those of
// elements that follow each other, of one memory and in the same loops, become one LOAD of a vector
// and a GEP for each. A block of them that is read along one axis and wanted along the other is so
// transposed in registers.
UOp widen_loads(UOp sink, const Target& target);

}  // namespace weft
