// What is known while one kernel is cut out of the graph.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"

namespace weft {

struct KernelContext {
  const NodeMap& kernel_of;  // a write -> 1 + the number of its kernel
  uint32_t number;           // of this kernel

  // Its DEFINE_GLOBALs, and the memory that each stands for: BUFFER, DEFINE_GLOBAL, or AFTER.
  std::vector<std::pair<UOp, UOp>> memories{};
  std::vector<UOp> variables{};  // BINDs met

  // A write of another kernel.
  bool is_outside(UOp effect) const {
    const uint64_t k = kernel_of.number(effect);
    return k != 0 && k != number + 1;
  }
};

}  // namespace weft
