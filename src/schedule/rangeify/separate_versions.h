// Memory that is written in two ways at once.
#pragma once

#include "ir/node.h"

namespace weft {

// A tensor graph in which every memory has at most one next version: where two AFTERs write to the
// same one, the first does it in place and the others in copies; so do those that write to what is
// a source of the SINK itself. Versions of many writes come in parts of at most `writes`. There is
// no DETACH in the graph; a copy is CONTIGUOUS(DETACH(memory)).
UOp separate_versions(UOp sink, size_t writes);

}  // namespace weft
