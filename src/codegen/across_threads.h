// A reduction over the threads of a workgroup, through local memory.
#pragma once

#include <span>

#include "ir/node.h"
#include "ir/op.h"

namespace weft {

// `partial` is what each place of `threads`, ranges of axis type local, has to give; the result is
// all of it combined by op, for every thread. Each thread leaves its part in local memory; of many
// parts, some threads first combine a row of them each.
UOp reduce_across_threads(UOp partial, Op op, std::span<const UOp> threads);

}  // namespace weft
