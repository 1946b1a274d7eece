// The choice of optimisations for targets with workgroups.
#pragma once

#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// Legal for the kernel. A thread takes a vector of neighbouring elements, threads of a group follow
// each other in memory; a reduction that lies in order is done by a group together; a contraction
// gets a tile of registers per thread and shares what it reads, a transposition shares its tile.
OptList choose_group_opts(UOp sink, const Target& target);

}  // namespace weft
