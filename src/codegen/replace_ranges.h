// Loops replaced by expressions of other loops, or by constants.
#pragma once

#include <span>
#include <utility>

#include "ir/node.h"

namespace weft {

// Whether a copy of what is replaced may use the same registers. The copies of an unrolled loop may
// not: each gets registers of its own, and local memory where it is AFTER(DEFINE_LOCAL, RANGEs).
enum class Registers : uint8_t { kSame, kOwn };

// root with every RANGE that is open in it replaced; what closes a RANGE hides it. Only nodes in
// the scope of the ranges are made anew.
UOp replace_ranges(UOp root, std::span<const std::pair<UOp, UOp>> replacements,
                   Registers registers = Registers::kSame);

// The graph with the sizes of its RANGEs in their simplest form. All passes leave them so: a part
// of the graph that is simplified then keeps its RANGEs.
UOp with_simple_sizes(UOp root);

// The graph made anew as `rebuild` does, where make may give several effects for one, as a SINK of
// them: what uses the effect then uses them all, and an END of it becomes a SINK of ENDs.
UOp flattened(UOp n, std::span<const UOp> srcs);

}  // namespace weft
