// Movement ops as index arithmetic.
#pragma once

#include <span>

#include "ir/node.h"
#include "schedule/rangeify/index_math.h"

namespace weft {

// One element of a view, as an element of what it is a view of.
struct Access {
  UOp base;              // no movement op
  IndexList at;          // one index per axis of base
  UOp gate;              // where it is false the element is 0; null: nowhere
  UOp flat;              // the same element counted in row-major order, where that is simpler
  bool repeats = false;  // an EXPAND on the way reads elements more than once
};

// The element `at` of n, followed through the movement ops on top of n's base. A register has no
// axes: its element is that of whoever reads it.
Access follow_views(UOp n, std::span<const UOp> at);

}  // namespace weft
