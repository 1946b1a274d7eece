// Tiles of registers for sums of products, by what they cost.
#pragma once

#include "codegen/opt/kernel_loops.h"

namespace weft {

// For a kernel that sums products of two factors, each used for several results: of all tiles (a
// loop whose iterations are lanes, others whose iterations run side by side, factors packed or not)
// the one that takes the least time does its optimisations, threads included. Whether there is one.
bool tile_products(KernelLoops& kernel);

}  // namespace weft
