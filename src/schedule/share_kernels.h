// Kernels of one schedule that differ in numbers alone become one.
#pragma once

#include <cstddef>

#include "schedule/kernel_table.h"
#include "schedule/schedule.h"

namespace weft {

// Where at least kFewestAlike kernels are the same but for a few scalars, as those of
// `a[[3, 5]] = 0.1` in a loop, one of them takes the place of all: it reads the scalars that differ
// from a table, at the number of the call (a VARIABLE). Comes before memory is planned. `table` has
// the facts of the schedule's kernels.
inline constexpr size_t kFewestAlike = 4;
void share_kernels(Schedule& schedule, const KernelTable& table);

// Whether a variable of a call is its number in such a table.
bool is_call_number(const BoundVariable& variable);

}  // namespace weft
