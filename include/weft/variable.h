// A size or an offset that changes from call to call, within bounds.
//
//   weft::Variable position("position", 0, 63);
//   auto sum = weft::jit([&](std::span<const weft::Tensor> in, std::span<const int64_t> at) {
//     return std::vector{in[0].at({weft::Slice{0, at[0] + 1}}).sum()};
//   });
//   sum({cache}, {position.bind(5)});
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace weft {

class VariableValue;

// A named integer between two bounds, both included. Equal ones are the same variable.
class Variable {
 public:
  // Throws ShapeError where the name is empty, or the bounds are not in order.
  Variable(std::string name, int64_t min, int64_t max);

  const std::string& name() const { return name_; }
  int64_t min() const { return min_; }
  int64_t max() const { return max_; }
  // Its value in one call. Throws ShapeError where that is out of bounds.
  VariableValue bind(int64_t value) const;

  bool operator==(const Variable&) const = default;

 private:
  std::string name_;
  int64_t min_, max_;
};

// A variable with a value between its bounds.
class VariableValue {
 public:
  const Variable& variable() const { return variable_; }
  int64_t value() const { return value_; }

  bool operator==(const VariableValue&) const = default;

 private:
  friend class Variable;
  VariableValue(Variable variable, int64_t value) : variable_(std::move(variable)), value_(value) {}

  Variable variable_;
  int64_t value_;
};

}  // namespace weft
