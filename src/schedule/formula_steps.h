// Integer expressions of variables, computed in no time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft {

// Expressions as one list of steps, sources first. The nodes are read when they are added only.
class FormulaSteps {
 public:
  explicit FormulaSteps(std::vector<std::string> variables = {})
      : variables_(std::move(variables)) {}

  // The step that computes the formula. Empty if it has other variables, or other ops than sums,
  // products, quotients, minima and maxima. `numbers` holds 1 + the step of each node so far.
  std::optional<uint32_t> add(UOp formula, NodeMap& numbers);

  // The value of every step. False if one has none: past 64 bits, or over a divisor of 0.
  bool compute(std::span<const int64_t> variables, std::vector<int64_t>& values) const;

  size_t size() const { return steps_.size(); }

 private:
  struct Step {
    Op op;
    int64_t constant;  // of a CONST; the number of a VARIABLE
    uint32_t a, b;     // earlier steps
  };
  std::vector<std::string> variables_;
  std::vector<Step> steps_;
};

}  // namespace weft
