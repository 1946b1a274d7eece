// Phase 3: decides for every value that may be stored whether it is.
#pragma once

#include "ir/node.h"
#include "schedule/schedule.h"

namespace weft {

// The rangeified graph with the values that are cheaper to compute again put into their users.
// Every BUFFERIZE that is left is CONTIGUOUS: it is stored. Values that read more memories than a
// kernel takes are stored in parts (fit_buffers).
UOp inline_buffers(UOp sink, const KernelLimits& limits);

}  // namespace weft
