// Phase 3: decides for every value that may be stored whether it is.
#pragma once

#include <vector>

#include "ir/node.h"
#include "rewrite/trace.h"
#include "schedule/schedule.h"

namespace weft {

// The rangeified graph with the values that are cheaper to compute again put into their users.
// Every BUFFERIZE that is left is CONTIGUOUS: it is stored. Values that read more memories than a
// kernel takes are stored in parts (fit_buffers).
// `decisions` gets those about values that may be stored, with the numbers that were compared.
UOp inline_buffers(UOp sink, const KernelLimits& limits,
                   std::vector<Decision>* decisions = nullptr);

}  // namespace weft
