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

// Threads that start together, share local memory and meet at barriers, as GPUs have them.
struct Workgroups {
  size_t threads = 0;  // of one group, at most; 0: the target has none, and runs loops
  std::array<int64_t, 3> most_threads{1024, 1024, 64};           // of a group, by dimension
  std::array<int64_t, 3> most_groups{2147483647, 65535, 65535};  // of a launch, by dimension
  size_t warp = 32;                                              // threads that step together
  size_t local_bytes = 48 << 10;                                 // that a group shares
  size_t together = 1;  // groups that run at the same time on the whole device, about
};

// Products of tiles in local memory (WMMA), with copies to it that run beside them (FETCH).
struct TensorCores {
  DTypeSet dtypes = 0;       // of factors whose products are summed in float32; none: no WMMA
  size_t local_bytes = 0;    // that a group with such products shares
  int64_t most_columns = 0;  // of one WMMA
  bool has_boxes = false;    // it has FETCH_BOX

  bool has(DType type) const { return (dtypes & set_of(type.scalar)) != 0; }
};

struct Target {
  std::string name;          // "LLVM", "C": part of the key of a compiled kernel
  size_t vector_bytes = 64;  // of one vector register; 0: the target has none
  size_t vector_registers = 32;
  bool halves_vectors = false;   // a vector of half the size takes half the time
  size_t cores = 1;              // that share one kernel
  size_t cache_bytes = 1 << 20;  // of the cache that one core has to itself
  // Additions of floats in a row, before their sum is added to another one; the second where
  // registers do not hold both sums of every copy.
  int64_t sum_block = 32, long_sum_block = 512;
  // Ops that the target does by itself, by the scalar dtype of their last source, each with exactly
  // the meaning that ops.def gives it. All others are decomposed. CAST is native between two dtypes
  // that are both in its set. LOAD, STORE and BITCAST take every dtype: one that has no arithmetic
  // is held as the unsigned integer of its width.
  std::array<DTypeSet, kOpCount> native{};
  KernelLimits limits{};
  Workgroups groups{};
  TensorCores tensor{};
  // False: vectors are only loaded and stored, at most memory_vector_bytes at a time, and taken
  // apart in between.
  bool vector_arithmetic = true;
  bool narrow_indices = false;  // indices have 32 bits in kernels where all of them fit
  size_t memory_vector_bytes = 16;

  bool can(Op op, DType type) const { return (native[size_t(op)] & set_of(type.scalar)) != 0; }
  size_t lanes(DType type) const {  // that fit into a vector register, at least 1
    const size_t bytes = size_t(type.item_bytes());
    return bytes == 0 || vector_bytes < bytes ? 1 : vector_bytes / bytes;
  }
};

}  // namespace weft
