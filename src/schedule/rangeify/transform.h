// Phase 2: a tensor graph with its indices assigned -> BUFFERIZE, INDEX and REDUCE on RANGEs.
#pragma once

#include "ir/node.h"
#include "schedule/rangeify/indexing.h"

namespace weft {

// The same SINK on scalars: a stored value is BUFFERIZE(value, ranges),
// BUFFERIZE(CONTIGUOUS(value), ranges) when it must be stored; a use of it is INDEX(BUFFERIZE,
// indices); a write is AFTER(memory, END(STORE(INDEX(memory, indices), value), ranges)). No
// movement op is left.
UOp transform_to_ranges(UOp sink, const IndexingContext& context);

}  // namespace weft
