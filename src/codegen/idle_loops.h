// Loops that change nothing in what they repeat.
#pragma once

#include "ir/node.h"

namespace weft {

// A write that does not depend on a loop around it (its place and its value have turned out to be
// the same in every iteration) leaves the loop if that surely runs: once is enough. In a loop that
// may not run, or that threads share, it is made to depend on it. Every END then closes loops that
// its effect stands in. A write that accumulates reads memory AFTER the loop's RANGE, and so
// depends on it.
UOp settle_idle_loops(UOp sink);

}  // namespace weft
