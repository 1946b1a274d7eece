// Which elements dropout keeps.
#pragma once

#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {

// Bools, false with probability p, by the next bits of the default generator.
weft::Tensor kept_by_chance(Ints shape, double p);

}  // namespace weft::pytorch
