// Searching for fast kernels.
#pragma once

namespace weft {

// Kernels that are compiled from now on get the optimisations that a beam search of this width
// finds by running candidates (docs/codegen-search.md); 0: those that rules of thumb say. Returns
// the width before; the environment's WEFT_BEAM is the first. Throws Error for a width that is not
// from 0 to 1024.
int set_beam(int width);

}  // namespace weft
