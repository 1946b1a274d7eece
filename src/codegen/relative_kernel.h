// Kernels that differ only in where in their arguments they begin.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/node.h"

namespace weft {

struct RelativeKernel {
  UOp root;                      // in the arena of the kernel that it was made of
  std::vector<int64_t> offsets;  // argument i begins so many elements into its memory
};

// `ast` is legal as a kernel. Every argument begins at the first element that an index of it can
// name, and ends behind the last one: cells of a recurrence, rows of a batch and slices of one
// memory give the same kernel, wherever they lie. An argument that is named by other means than
// indices within its memory, or whose size is symbolic, begins where it did.
RelativeKernel relative_kernel(UOp ast);

}  // namespace weft
