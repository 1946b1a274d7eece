// Optimisations of a kernel that goes through blocks.
#pragma once

#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// For a kernel whose iterations go through loops that carry local memory: rows of it run together,
// and each write to local memory gets the optimisations of a kernel of its own.
OptList choose_block_opts(UOp sink, const Target& target);

}  // namespace weft
