// Steps, sources first.
#include "schedule/size_formulas.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "schedule/schedule.h"
#include "symbolic/linear.h"

namespace weft {
namespace {

constexpr OpSet kArithmetic = {Op::ADD, Op::SUB, Op::MUL, Op::IDIV, Op::MOD, Op::MIN, Op::MAX};

// False past 64 bits, and where a divisor is not positive.
bool compute(Op op, int64_t a, int64_t b, int64_t& result) {
  if (op == Op::ADD) return !__builtin_add_overflow(a, b, &result);
  if (op == Op::SUB) return !__builtin_sub_overflow(a, b, &result);
  if (op == Op::MUL) return !__builtin_mul_overflow(a, b, &result);
  if (op == Op::MIN || op == Op::MAX) {
    result = op == Op::MIN ? std::min(a, b) : std::max(a, b);
    return true;
  }
  if (b <= 0) return false;
  result = op == Op::IDIV ? floor_div(a, b) : floor_mod(a, b);
  return true;
}

}  // namespace

std::optional<SizeFormulas> SizeFormulas::of(const Schedule& schedule,
                                             std::span<const std::string> variables) {
  SizeFormulas f;
  if (!schedule.formulas) return f;
  NodeMap numbers(*schedule.formulas);  // 1 + step
  for (uint32_t b = 0; b < schedule.buffers.size(); b++) {
    const UOp formula = schedule.buffers[b].formula;
    if (!formula) continue;
    bool is_known = true;
    visit_missing(
        formula, [&](UOp n) { return numbers.has(n); },
        [&](UOp n) {
          Step step{n.op(), 0, 0, 0};
          if (n.is_const()) {
            step.constant = n.const_int();
          } else if (n.is(Op::VARIABLE)) {
            const auto at = std::ranges::find(variables, n.name());
            is_known = is_known && at != variables.end();
            step.constant = at - variables.begin();
          } else {
            is_known = is_known && kArithmetic.has(n.op()) && n.src_count() == 2;
            if (is_known) {
              step.a = uint32_t(numbers.number(n.src(0)) - 1);
              step.b = uint32_t(numbers.number(n.src(1)) - 1);
            }
          }
          f.steps_.push_back(step);
          numbers.put_number(n, f.steps_.size());
        });
    if (!is_known) return {};
    f.sizes_.push_back({b, uint32_t(numbers.number(formula) - 1)});
  }
  return f;
}

bool SizeFormulas::apply(std::span<const int64_t> variables, Schedule& schedule) const {
  std::vector<int64_t> values(steps_.size());
  for (size_t i = 0; i < steps_.size(); i++) {
    const Step& s = steps_[i];
    if (s.op == Op::CONST) {
      values[i] = s.constant;
    } else if (s.op == Op::VARIABLE) {
      values[i] = variables[size_t(s.constant)];
    } else if (!compute(s.op, values[s.a], values[s.b], values[i])) {
      return false;
    }
  }
  for (const Size& size : sizes_) {
    if (values[size.step] < 0) return false;
    schedule.buffers[size.buffer].size = values[size.step];
  }
  return true;
}

}  // namespace weft
