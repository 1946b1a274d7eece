// One loop cut into an outer and an inner one.
#pragma once

#include <cstdint>

#include "ir/node.h"

namespace weft {

struct Split {
  int64_t amount;    // places of the inner loop
  AxisType inner;    // its axis type
  int64_t inner_id;  // its id; the loop for the rest has the next one
};

// The range, of size n, becomes outer * amount + inner: the outer part keeps its id, axis type and
// place among the loops, with n / amount places; the inner part is the innermost loop, or, in a
// kernel with registers, the next one. The rest of n % amount
// places is a loop of its own: another END, or another REDUCE that is combined with the first.
UOp split_range(UOp sink, UOp range, const Split& split);

// The range becomes the outermost loop of all that close it, a thread loop whose places are
// `amount` places of it each, done by a loop that keeps its id; the last one has what is left. 0
// makes it the thread loop itself.
UOp make_thread_range(UOp sink, UOp range, int64_t amount, int64_t inner_id);

// The range as a loop that is not given out to anybody.
UOp make_serial_range(UOp sink, UOp range);

// The range with a size that is a multiple of `amount`. Writes and what is reduced are gated.
UOp pad_range(UOp sink, UOp range, int64_t amount);

}  // namespace weft
