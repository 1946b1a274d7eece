// Factors of a contraction as arrays of which boxes are copied (FETCH_BOX).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/node.h"

namespace weft {

// The parts of a condition that all hold.
std::vector<UOp> conditions_of(UOp gate);

// Memory as an array with an axis for each range of a LOAD.
struct RangedArray {
  struct Axis {
    UOp range;
    int64_t size, step;  // in elements
  };

  UOp memory{};        // a DEFINE_GLOBAL
  int64_t offset = 0;  // of the first element
  std::vector<Axis> axes;
};

// What a LOAD reads, in order along `first`, which is the first axis; the others by their steps.
// Its gate only says where the axes end. None: it reads no such array, or one that the hardware
// does not copy boxes of.
std::optional<RangedArray> ranged_array(UOp load, UOp first);

}  // namespace weft
