// What optimisations ask of the loops of a kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/node.h"

namespace weft {

// The RANGE with this id; none when there is none.
UOp range_by_id(UOp sink, int64_t id);
int64_t free_range_id(UOp sink);

// What closes the range: its ENDs, or its REDUCEs.
std::vector<UOp> closers_of(UOp sink, UOp range);

// Loops whose iterations can be done in any order, or at once, get the axis type global: those that
// are closed by ENDs alone, where no register goes from one iteration to the next, and each writes
// elements of its own: one, and reads no other of that memory, or any of a block that no other
// iteration touches. What a global loop is cut into is parallel, too.
UOp mark_parallel_loops(UOp sink);

// Whether memory is touched AFTER effects of the same kernel: the loops of these follow each other,
// and on a device that cannot wait for all of its threads one thread runs them.
bool runs_in_order(UOp sink);

// Of a LOAD or a STORE to memory.
UOp index_of(UOp access);

// The distance in memory between two places of the range that follow each other; empty when it is
// not constant. `access` is a LOAD or a STORE to memory.
std::optional<int64_t> step_of(UOp access, UOp range);

}  // namespace weft
