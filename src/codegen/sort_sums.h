// The sums of indices of a kernel in an order that names do not decide.
#pragma once

#include "ir/node.h"

namespace weft {

// `ast` is legal as a kernel. Loops are numbered in the order in which ENDs and REDUCEs name them.
// Terms of sums of indices, and of conjunctions, stand in the order of what they are, whatever the
// numbers of the nodes were when they were simplified, and, as far as that tells them apart,
// whatever sizes they have: kernels that were equal up to the order, or are so up to sizes, are the
// same graph, or have one skeleton.
UOp sort_sums(UOp ast);

}  // namespace weft
