// What a target can do: the passes of codegen and the choice of optimisations read nothing else
// about it.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "ir/dtype.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "schedule/schedule.h"

namespace weft {

struct Target {
  std::string name;          // "LLVM", "C": part of the key of a compiled kernel
  size_t vector_bytes = 64;  // of one vector register; 0: the target has none
  size_t vector_registers = 32;
  size_t cores = 1;              // that share one kernel
  size_t cache_bytes = 1 << 20;  // of the cache that one core has to itself
  // Ops that the target does by itself, by the scalar dtype of their last source, each with exactly
  // the meaning that ops.def gives it. All others are decomposed. CAST is native between two dtypes
  // that are both in its set. LOAD, STORE and BITCAST take every dtype: one that has no arithmetic
  // is held as the unsigned integer of its width.
  std::array<DTypeSet, kOpCount> native{};
  KernelLimits limits{};

  bool can(Op op, DType type) const { return (native[size_t(op)] & set_of(type.scalar)) != 0; }
  size_t lanes(DType type) const {  // that fit into a vector register, at least 1
    const size_t bytes = size_t(type.item_bytes());
    return bytes == 0 || vector_bytes < bytes ? 1 : vector_bytes / bytes;
  }
};

}  // namespace weft
