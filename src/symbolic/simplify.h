// Integer arithmetic to its simplest form.
#pragma once

#include <span>
#include <vector>

#include "ir/node.h"
#include "rewrite/rule_set.h"
#include "rewrite/trace.h"

namespace weft {

// The graph with every expression simplified; simplifying again changes nothing.
UOp simplify(UOp root, Trace* trace = nullptr);

// All rules, and all but those that look at gates.
const RuleSet& symbolic_rules();
const RuleSet& ungated_rules();

// All tables, for the prover and the documentation.
std::vector<RuleTable> symbolic_tables();

}  // namespace weft
