// The shape of every node of a tensor graph.
#pragma once

#include "ir/dim.h"
#include "ir/node.h"

namespace weft {

// The shape of n's value: () for scalars. Computed once per node. A node that the spec refuses
// still gets some shape: verify() is what says that it is wrong.
Shape shape_of(UOp n);

}  // namespace weft
