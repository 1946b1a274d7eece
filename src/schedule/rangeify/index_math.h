// Index arithmetic that folds as it builds: sums, products and flat offsets of dtype index.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"

namespace weft {

using IndexList = std::vector<UOp>;

UOp index_add(Arena& arena, UOp a, UOp b);
UOp index_mul(Arena& arena, UOp a, UOp b);
UOp index_div(Arena& arena, UOp a, UOp b);
UOp index_mod(Arena& arena, UOp a, UOp b);
UOp index_and(Arena& arena, UOp a, UOp b);  // of gates; null is true

// The expression in its simplest form; cheap on what is simple already.
UOp simplify_index(UOp n);

// The strides of a shape in row-major order.
IndexList strides_of(Arena& arena, Shape shape);

// at[0]*strides[0] + at[1]*strides[1] + ...
UOp flat_index(Arena& arena, Shape shape, std::span<const UOp> at);

// The coordinates of a flat index in a shape, each simplified.
IndexList unflatten(Arena& arena, Shape shape, UOp flat);

}  // namespace weft
