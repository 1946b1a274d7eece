// Sizes of memory that depend on variables, computed in no time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/node.h"
#include "ir/op.h"
#include "schedule/schedule.h"

namespace weft {

// The formulas of a schedule's buffers as one list of steps.
class SizeFormulas {
 public:
  // Empty if a formula has other ops than sums, products, quotients, minima and maxima.
  static std::optional<SizeFormulas> of(const Schedule& schedule,
                                        std::span<const std::string> variables);

  // Sets the sizes of the schedule's buffers. False if one of them has no value.
  bool apply(std::span<const int64_t> variables, Schedule& schedule) const;

 private:
  struct Step {
    Op op;
    int64_t constant;  // of a CONST; the number of a VARIABLE
    uint32_t a, b;     // earlier steps
  };
  struct Size {
    uint32_t buffer, step;
  };
  std::vector<Step> steps_;
  std::vector<Size> sizes_;
};

}  // namespace weft
