// The rewrite rules of the scheduler that need no analysis.
#pragma once

#include <span>

#include "rewrite/rule_set.h"

namespace weft {

// Before ranges: DETACH, CONTIGUOUS_BACKWARD, empty AFTERs, views of nothing but themselves.
const RuleSet& early_rules();

// On BUFFERIZE and INDEX: a stored copy of stored memory, axes that nothing depends on.
const RuleSet& bufferize_rules();

}  // namespace weft
