// What makes two graphs equal inside of a process.
#pragma once

#include <span>

#include "base/hash.h"
#include "ir/node.h"

namespace weft {

// Of a graph by its nodes, sources first, in the order that toposort gives them.
Hash128 graph_key(std::span<const UOp> order);

}  // namespace weft
