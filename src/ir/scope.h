// Which loops a node stands in.
#pragma once

#include <span>

#include "ir/node.h"

namespace weft {

// The RANGEs that n depends on and that nothing below it has closed, by id. END, REDUCE and
// BUFFERIZE close the ranges that they name. Computed once per node.
std::span<const UOp> ranges_of(UOp n);

bool is_in_scope(UOp range, UOp n);

}  // namespace weft
