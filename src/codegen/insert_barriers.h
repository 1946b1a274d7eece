// Threads of a workgroup wait for each other where they share local memory.
#pragma once

#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// `linear` is a LINEAR. On a target with workgroups, a BARRIER stands on every way from a write of
// local memory to a read of it, from a read to a write, and from one write to another, loops
// included: before the outermost loop that the earlier one does not stand in.
UOp insert_barriers(UOp linear, const Target& target);

}  // namespace weft
