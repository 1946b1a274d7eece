// Graphs as text: exact, short, or drawn.
#pragma once

#include <cstddef>
#include <string>

#include "ir/node.h"

namespace weft {

// One line per node, sources first; parse() (ir/parse.h) reads it back to the same graph:
//   %0 = CONST index 4
//   %1 = RANGE index (%0) 0:loop
//   %2 = ADD index (%1, %0)
std::string print(UOp root);

// For people: "(r0*4 + r1) % 8". Long graphs are cut at `most` characters.
std::string short_form(UOp n, size_t most = 400);

// One node as print() writes it, with short forms for its sources.
std::string describe(UOp n);

// n, what it reads, and what they read: the neighbourhood that an error shows.
std::string neighbourhood(UOp n);

// Graphviz.
std::string to_dot(UOp root);

}  // namespace weft
