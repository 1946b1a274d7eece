// How much arithmetic a graph does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/node.h"
#include "schedule/formula_steps.h"

namespace weft {

// The elementwise operations on data that one run of a kernel does, weighted as the scheduler
// weighs them (weight_of: an addition is 1, an exponential 8): each as often as its loops go round,
// and those that they stand in, where it is computed.
// A reduction does one per element that it takes in. Addresses and the conditions on them are free.
// A size that depends on more than variables counts up to its bounds, or once where it has none, as
// a number from memory. At most UINT64_MAX.
class KernelFlops {
 public:
  KernelFlops() = default;
  explicit KernelFlops(UOp ast);

  // With these values of the kernel's VARIABLEs, in the order of their names.
  uint64_t count(std::span<const int64_t> variables) const;

 private:
  // Operations in loops, the product of whose sizes is that of the steps.
  struct Term {
    double operations;
    std::vector<uint32_t> sizes;
  };
  class Builder;

  FormulaSteps steps_;
  std::vector<Term> terms_;
  double constant_ = 0;  // in loops of constant size
  double most_ = 0;      // up to the bounds of the variables
};

// The same of a tensor graph, where every element of every node is computed once.
uint64_t tensor_flops(UOp sink);

}  // namespace weft
