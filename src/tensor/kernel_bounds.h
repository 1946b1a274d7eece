// What a kernel of a user reads and writes, against the memory that it is given.
#pragma once

#include <cstdint>
#include <span>

#include "ir/dtype.h"
#include "ir/node.h"

namespace weft {

struct KernelMemory {
  DType dtype;
  int64_t count;
};

// Throws SpecError where DEFINE_GLOBAL i is not of the dtype of memory i, and IndexError where a
// LOAD, a STORE or a FETCH is known to leave its memory: its index has no value within, or each of
// its ends is reached, or there is an iteration in which it does. What depends on what memory holds
// is not known, nor what happens only where a WHERE or the gate of another access says so.
void check_accesses(UOp kernel, std::span<const KernelMemory> memory);

}  // namespace weft
