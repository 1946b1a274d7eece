// Steps are values by number.
#include "schedule/formula_steps.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "symbolic/linear.h"

namespace weft {
namespace {

constexpr OpSet kArithmetic = {Op::ADD, Op::SUB, Op::MUL, Op::IDIV, Op::MOD, Op::MIN, Op::MAX};

// False past 64 bits, and where a divisor is not positive.
bool compute_one(Op op, int64_t a, int64_t b, int64_t& result) {
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

std::optional<uint32_t> FormulaSteps::add(UOp formula, NodeMap& numbers) {
  for (UOp n : toposort(formula)) {
    const bool is_variable =
        n.is(Op::VARIABLE) && std::ranges::find(variables_, n.name()) != variables_.end();
    const bool is_known =
        n.is_const() || is_variable || (kArithmetic.has(n.op()) && n.src_count() == 2);
    if (!is_known) return std::nullopt;
  }
  visit_missing(
      formula, [&](UOp n) { return numbers.has(n); },
      [&](UOp n) {
        Step step{n.op(), 0, 0, 0};
        if (n.is_const()) {
          step.constant = n.const_int();
        } else if (n.is(Op::VARIABLE)) {
          step.constant = std::ranges::find(variables_, n.name()) - variables_.begin();
        } else {
          step.a = uint32_t(numbers.number(n.src(0)) - 1);
          step.b = uint32_t(numbers.number(n.src(1)) - 1);
        }
        steps_.push_back(step);
        numbers.put_number(n, steps_.size());
      });
  return uint32_t(numbers.number(formula) - 1);
}

bool FormulaSteps::compute(std::span<const int64_t> variables, std::vector<int64_t>& values) const {
  values.resize(steps_.size());
  for (size_t i = 0; i < steps_.size(); i++) {
    const Step& s = steps_[i];
    if (s.op == Op::CONST) {
      values[i] = s.constant;
    } else if (s.op == Op::VARIABLE) {
      values[i] = variables[size_t(s.constant)];
    } else if (!compute_one(s.op, values[s.a], values[s.b], values[i])) {
      return false;
    }
  }
  return true;
}

}  // namespace weft
