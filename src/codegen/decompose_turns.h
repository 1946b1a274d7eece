// A float as a number of turns: x / 2 pi without its integer part, in integers, for any x.
#pragma once

#include "ir/node.h"

namespace weft {

// A fraction of a turn in uint64 lanes: high / 2^64 + low / 2^128. float32 has no `low`.
struct Turns {
  UOp high, low;
};

// Of finite numbers of at least 2^17 (float32) and 2^22 (float64); others give anything. The error
// is below 2^-62 of a turn for float32, 2^-126 for float64.
Turns turns32(UOp x);
Turns turns64(UOp x);

Turns quarter_turn_on(Turns t);

// t = (n + f) / 2 turns with an integer n and |f| <= 1/2.
UOp half_turns(Turns t);  // n in uint64, its last bit alone
UOp half_turn(Turns t);   // f in float64
// f as the sum of two float32, of a Turns without `low`.
struct HalfTurn {
  UOp high, low;
};
HalfTurn half_turn_in_float32(Turns t);

}  // namespace weft
