// Kernels as the passes expect them, however they are spelled.
#pragma once

#include "ir/node.h"

namespace weft {

// `ast` is legal as a kernel. Sizes in their simplest form, so that a loop or memory is one node
// wherever it is met; no cast of a pointer to what it is, and no vector of one lane; a reduction
// that stands above another one over the same RANGE has a RANGE of its own. Throws SpecError where
// a size turns out to be illegal.
UOp canonical(UOp ast);

}  // namespace weft
