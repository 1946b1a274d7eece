// Runs rules on a graph and checks every step that they took.
#pragma once

#include <string>
#include <string_view>

#include "ir/node.h"
#include "rewrite/rule_set.h"
#include "tests/rules/point.h"

namespace weft::test {

struct Steps {
  int fired = 0;      // steps of the rule asked for
  std::string fault;  // empty when every step kept the value and the dtype
};

// Rewrites `root`; each step's two sides are compared at `points` random points.
Steps check_steps(UOp root, const RuleSet& rules, std::string_view rule, int points,
                  Random& random);

}  // namespace weft::test
