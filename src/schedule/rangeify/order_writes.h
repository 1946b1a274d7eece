// Writes that touch the same elements, one after the other.
#pragma once

#include "ir/node.h"
#include "schedule/schedule.h"

namespace weft {

// AFTER(m, w1, w2, ...) says that each write comes after those before it. Here writes of one AFTER
// touch different elements and can run in any order; where they may not, the later one is AFTER the
// earlier ones: AFTER(AFTER(m, w1), w2). So it is where they would be too much for one kernel, and
// with contractions: each is a kernel of its own, whatever the others are and whatever sizes they
// happen to share.
UOp order_writes(UOp sink, const KernelLimits& limits);

}  // namespace weft
