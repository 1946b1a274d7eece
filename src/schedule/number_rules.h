// What the numbers of like programs have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "schedule/skeleton.h"

namespace weft {

// A number as factor*a*b + constant, where a and b are variables.
struct NumberFormula {
  static constexpr uint32_t kNone = UINT32_MAX;
  int64_t constant = 0;
  int64_t factor = 0;
  uint32_t a = kNone, b = kNone;

  std::optional<int64_t> value(std::span<const int64_t> variables) const;  // empty past 63 bits
  Dim in(Arena& arena, std::span<const UOp> variables) const;
};

struct NumberRules {
  struct Variable {
    int64_t lo, hi;  // values that a schedule is made for
    size_t number;   // the number that it is
  };
  std::vector<Variable> variables;
  std::vector<NumberFormula> formulas;  // of every number

  // The values of the variables in a program, if its numbers are as the rules say.
  std::optional<std::vector<int64_t>> values(std::span<const Number> numbers) const;
};

// Rules that hold for all of these programs, which have one skeleton: numbers that differ are
// variables, or follow from others. Empty if that takes more variables than `most`.
std::optional<NumberRules> find_rules(std::span<const std::vector<Number>> programs,
                                      size_t most = 8);

}  // namespace weft
