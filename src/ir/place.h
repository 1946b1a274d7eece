// Which memory a node names.
#pragma once

#include "ir/node.h"

namespace weft {

// What lies beneath a view or a pointer.
struct Place {
  UOp version;  // n without the movement ops and BITCASTs around it: what n is a view of
  UOp base;     // also without AFTERs, INDEXes and casts of pointers: the definition or value
  bool is_indexed = false;   // an INDEX lies between n and base
  bool is_expanded = false;  // an EXPAND between n and version repeats elements
  bool is_padded = false;    // a PAD lies between n and version
};

// Computed once per node, by walking first sources.
Place place_of(UOp n);

// A DEFINE_REG or a DEFINE_GLOBAL of one element, perhaps AFTER effects: it is read and written as
// a whole, without a pointer.
bool is_register(UOp n);

// A movement op or a BITCAST: the same elements, or some of them, read in another way.
bool is_view(Op op);

}  // namespace weft
