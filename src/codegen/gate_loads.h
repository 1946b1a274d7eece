// Reads that could be out of bounds happen only where their value is used.
#pragma once

#include "ir/node.h"

namespace weft {

// WHERE(c, f(LOAD(p)), y) becomes WHERE(c, f(LOAD(p, c, 0)), y) when p may lie outside of its
// memory. The gate of a LOAD is the disjunction over its uses of the conjunction of the conditions
// above. Where a value is computed in fewer loops than a condition on it, the gate is also that the
// index is in bounds.
UOp gate_loads(UOp sink);

}  // namespace weft
