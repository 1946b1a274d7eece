// Parallel loops become workgroups and their threads.
#pragma once

#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// On a target with workgroups, the global ranges that the kernel's outermost ENDs close become
// SPECIALs gidx0..2, with the innermost loop for 0, and all ranges of axis type local become
// lidx0..2. ENDs of different loops share one launch: an END that has fewer or more groups than
// there are goes through its places in steps of the groups. What is done by fewer threads than a
// group has is gated. A kernel whose loops wait for each other is left to one thread.
UOp gpudims(UOp sink, const Target& target);

}  // namespace weft
