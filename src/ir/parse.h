// Reads the exact text form.
#pragma once

#include <string_view>

#include "ir/arena.h"
#include "ir/node.h"

namespace weft {

// The graph that print() wrote: its last line is the root. Empty lines and lines that start with
// '#' are passed over. Throws ParseError with the line number and what was expected.
UOp parse(Arena& arena, std::string_view text);

}  // namespace weft
