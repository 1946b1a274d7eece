// The table of C: elementwise ops as text.
#pragma once

#include "ir/node.h"
#include "render/c_style.h"

namespace weft {

// The row for a node; one without text where C has none.
CRow c_row(UOp n);

}  // namespace weft
