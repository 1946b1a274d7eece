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
// becomes LOAD(INDEX(memory, offset)). Local memory in loops is AFTER these: each of their
// iterations has it for itself.
//
// COPY(memory, DEVICE) becomes AFTER(BUFFER, END(STORE(INDEX(BUFFER, r), COPY(INDEX(memory, r))),
// r)) with a BUFFER on that device: the COPY says that the write is a transfer, a kernel of its
// own.
UOp bufferize_to_store(UOp sink);

}  // namespace weft
