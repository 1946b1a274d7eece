// Places of a graph that only loops decide, iteration by iteration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/node.h"

namespace weft {

// A place of memory that something reads or writes.
struct LoopPlaces {
  UOp index;   // in units of `unit` elements
  UOp gate;    // null: there is none
  UOp within;  // what stands in the loops, such as the access itself
  int64_t unit = 1;
  int64_t width = 1;  // elements from there on
  int64_t count = 0;  // elements that the memory has
};

struct PlaceOutside {
  int64_t element;
  std::string where;  // "r0 = 3, r1 = 0"
};

// An iteration that happens and leaves the memory. None: there is no such iteration, or too many to
// look at all of them, or what happens depends on more than loops of constant bounds.
std::optional<PlaceOutside> find_outside(const LoopPlaces& places);

}  // namespace weft
