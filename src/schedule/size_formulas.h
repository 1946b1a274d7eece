// Sizes of memory that depend on variables, computed in no time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedule/formula_steps.h"
#include "schedule/schedule.h"

namespace weft {

// The formulas of a schedule's buffers.
class SizeFormulas {
 public:
  // Empty if a formula has other ops than sums, products, quotients, minima and maxima.
  static std::optional<SizeFormulas> of(const Schedule& schedule,
                                        std::span<const std::string> variables);

  // Sets the sizes of the schedule's buffers. False if one of them has no value.
  bool apply(std::span<const int64_t> variables, Schedule& schedule) const;
  // The same: sizes[i] is that of buffer i.
  bool apply(std::span<const int64_t> variables, std::span<int64_t> sizes) const;

 private:
  struct Size {
    uint32_t buffer, step;
  };
  FormulaSteps steps_;
  std::vector<Size> sizes_;
};

}  // namespace weft
