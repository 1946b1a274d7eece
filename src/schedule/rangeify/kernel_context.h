// What is known while one kernel is cut out of the graph.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"

namespace weft {

struct KernelContext {
  KernelContext(Arena& arena, const NodeMap& kernel_of_write, uint32_t kernel)
      : kernel_of(kernel_of_write), number(kernel), definitions(arena), owned(arena) {}

  const NodeMap& kernel_of;  // a write -> 1 + the number of its kernel
  uint32_t number;           // of this kernel

  NodeMap definitions;         // memory as the kernel finds it -> its DEFINE_GLOBAL
  NodeMap owned;               // the DEFINE_GLOBALs made here
  std::vector<UOp> memories;   // BUFFER, DEFINE_GLOBAL, or AFTER of one: in order of first use
  std::vector<UOp> variables;  // BINDs met

  // A write of another kernel.
  bool is_outside(UOp effect) const {
    const uint64_t k = kernel_of.number(effect);
    return k != 0 && k != number + 1;
  }
};

}  // namespace weft
