// Phase 5, first step: stored values become memory and the writes that fill it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "ir/node.h"

namespace weft {

// A value that a schedule stores: GLOBAL becomes
//     AFTER(DEFINE_GLOBAL, END(STORE(INDEX(DEFINE_GLOBAL, offset), value), ranges))
// and LOCAL the same on a DEFINE_LOCAL with a BARRIER around the END. A read INDEX(BUFFERIZE, i...)
// becomes LOAD(INDEX(memory, offset)).
UOp bufferize_to_store(UOp sink);

}  // namespace weft
