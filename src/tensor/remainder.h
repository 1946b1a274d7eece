// Division of floats that rounds, as C and Python have it.
#pragma once

#include "tensor/term.h"

namespace weft {

// fmod: the sign of x. Exact while x / y is less than 2^28 for floats of up to 32 bits, and 2^53
// for float64; past that it is only less than y.
Term remainder_toward_zero(const Term& x, const Term& y);
// x % y: the sign of y.
Term remainder_down(const Term& x, const Term& y);
// x // y
Term quotient_down(const Term& x, const Term& y);

}  // namespace weft
