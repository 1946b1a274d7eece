// Integer arithmetic to its simplest form.
#pragma once

#include <span>
#include <vector>

#include "ir/node.h"
#include "rewrite/rule_set.h"
#include "rewrite/trace.h"

namespace weft {

// Whether what a gate says goes into the address of a LOAD behind it. A LOAD happens where the gate
// is off, too: after gate_loads, which looks at addresses, they stay as they are.
enum class Loads : bool { kNarrow, kStay };

// The graph with every expression simplified; simplifying again changes nothing.
UOp simplify(UOp root, Trace* trace = nullptr, Loads loads = Loads::kNarrow);

// All rules, and all but those that look at gates.
const RuleSet& symbolic_rules(Loads loads = Loads::kNarrow);
const RuleSet& ungated_rules();

// All tables, for the prover and the documentation.
std::vector<RuleTable> symbolic_tables(Loads loads = Loads::kNarrow);

}  // namespace weft
