// Kernels that would read more memories than the target takes.
#pragma once

#include <cstddef>

#include "ir/node.h"

namespace weft {

// Stores parts of values that read more than `most` memories, so that none does.
UOp fit_buffers(UOp sink, size_t most);

}  // namespace weft
