// In which loops of a kernel each node is computed.
#pragma once

#include <span>
#include <vector>

#include "ir/node.h"

namespace weft {

// A node is computed in the innermost of the loops that it depends on, so in those around it, too.
class LoopNest {
 public:
  // All nodes of the kernel, sources first.
  explicit LoopNest(std::span<const UOp> order);

  // The loops of one evaluation of n: of a REDUCE, those in which it takes in an element.
  std::vector<UOp> around(UOp n) const;

 private:
  std::vector<UOp> closers_;  // REDUCEs, inner ones first, then ENDs
};

}  // namespace weft
