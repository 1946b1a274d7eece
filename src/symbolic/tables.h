// The rule tables of the simplifier, one function per subject.
#pragma once

#include <span>

#include "rewrite/rule.h"
#include "symbolic/simplify.h"

namespace weft {

std::span<const RuleTable> fold_tables();      // constants
std::span<const RuleTable> identity_tables();  // neutral and absorbing elements, by dtype
std::span<const RuleTable> collect_tables();   // sums and products in canonical form
std::span<const RuleTable> divmod_tables();    // floor division and remainder
std::span<const RuleTable> compare_tables();   // comparisons, minimum and maximum
// What a gate says about the values behind it.
std::span<const RuleTable> valid_tables(Loads loads = Loads::kNarrow);

}  // namespace weft
