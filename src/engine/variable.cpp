// Variables check what they are given.
#include "weft/variable.h"

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace weft {

Variable::Variable(std::string name, int64_t min, int64_t max)
    : name_(std::move(name)), min_(min), max_(max) {
  if (name_.empty()) throw ShapeError("[Variable] a name is needed");
  if (min > max) {
    throw ShapeError(
        fmt::format("[Variable] the bounds of {} are in order, not {} and {}", name_, min, max));
  }
}

VariableValue Variable::bind(int64_t value) const {
  if (value < min_ || value > max_) {
    throw ShapeError(
        fmt::format("[bind] {} is between {} and {}; given is {}", name_, min_, max_, value));
  }
  return {*this, value};
}

}  // namespace weft
