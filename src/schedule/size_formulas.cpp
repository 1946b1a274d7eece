// A step for each buffer that has a formula.
#include "schedule/size_formulas.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "schedule/formula_steps.h"
#include "schedule/schedule.h"

namespace weft {

std::optional<SizeFormulas> SizeFormulas::of(const Schedule& schedule,
                                             std::span<const std::string> variables) {
  SizeFormulas f;
  if (!schedule.formulas) return f;
  f.steps_ = FormulaSteps({variables.begin(), variables.end()});
  NodeMap numbers(*schedule.formulas);
  for (uint32_t b = 0; b < schedule.buffers.size(); b++) {
    const UOp formula = schedule.buffers[b].formula;
    if (!formula) continue;
    const std::optional<uint32_t> step = f.steps_.add(formula, numbers);
    if (!step) return {};
    f.sizes_.push_back({b, *step});
  }
  return f;
}

bool SizeFormulas::apply(std::span<const int64_t> variables, Schedule& schedule) const {
  std::vector<int64_t> values;
  if (!steps_.compute(variables, values)) return false;
  for (const Size& size : sizes_) {
    if (values[size.step] < 0) return false;
    schedule.buffers[size.buffer].size = values[size.step];
  }
  return true;
}

bool SizeFormulas::apply(std::span<const int64_t> variables, std::span<int64_t> sizes) const {
  std::vector<int64_t> values;
  if (!steps_.compute(variables, values)) return false;
  for (const Size& size : sizes_) {
    if (values[size.step] < 0) return false;
    sizes[size.buffer] = values[size.step];
  }
  return true;
}

}  // namespace weft
