// The optimisations that are worth trying on a kernel.
#pragma once

#include <vector>

#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// What could come next, from a small table of amounts for each loop. All of them apply. The
// kernel's parallel loops are marked (loops.h).
std::vector<Opt> next_opts(UOp kernel, const Target& target);

// The list with one amount replaced by another of the table, for each that there is. Whether they
// apply is not said.
std::vector<OptList> with_other_amounts(const OptList& opts, const Target& target);

}  // namespace weft
