// How much arithmetic a graph does.
#pragma once

#include <cstdint>

#include "ir/node.h"

namespace weft {

// The elementwise operations on data that one run of a kernel does, weighted as the scheduler
// weighs them (weight_of: an addition is 1, an exponential 8): each as often as its loops go round,
// which is up to the bounds of a symbolic size. A reduction does one per element that it takes in.
// Addresses and the conditions on them are free. At most UINT64_MAX.
uint64_t kernel_flops(UOp ast);

// The same of a tensor graph, where every element of every node is computed once.
uint64_t tensor_flops(UOp sink);

}  // namespace weft
