// Long chains of writes and of arithmetic as loops.
#pragma once

#include <span>
#include <string>

#include "ir/node.h"
#include "schedule/roll/progression.h"

namespace weft {

struct RolledGraph {
  UOp sink;
  Tables tables;  // contents of the BUFFERs that were made
};

// Writes of one version that are equal up to constants become one write in a RANGE,
//     AFTER(memory, END(STORE(view at offset + step*r, value of r), r))
// also when each uses the value of the one before: then a register carries it through the loop. So
// do long chains of elementwise arithmetic. Constants that no formula gives become tables. The
// result is a tensor graph but for RANGE, END, INDEX and registers in such loops.
// `order` is all of it, sources first.
RolledGraph roll_graph(UOp sink, std::span<const UOp> order, const std::string& device);

}  // namespace weft
