// What the choice of optimisations asks of single loops, accesses and factors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/dtype.h"
#include "ir/node.h"

namespace weft {

// A read or a write of memory.
bool is_access(UOp n);

// How often a loop runs, at most; and a node, in all loops around it.
int64_t most_places(UOp range);
double places_of(UOp n);

// The bytes of a value as it is computed: narrow floats are computed in float32.
size_t computed_bytes(DType type);

// At most `most` of the places of a loop, a part of them without a rest if one is near.
int64_t fitting(int64_t most, int64_t places);

// The one LOAD that a factor is made of; none when it reads several.
UOp only_load(UOp factor);

bool is_sum_of_products(UOp n);

}  // namespace weft
