// The tables of the simplifier, in the order in which their rules are tried.
#include "symbolic/simplify.h"

#include <span>
#include <vector>

#include "ir/node.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "rewrite/trace.h"
#include "symbolic/tables.h"

namespace weft {
namespace {

std::vector<RuleTable> ungated_tables() {
  std::vector<RuleTable> all;
  for (const auto& subject :
       {fold_tables(), identity_tables(), collect_tables(), divmod_tables(), compare_tables()}) {
    all.insert(all.end(), subject.begin(), subject.end());
  }
  return all;
}

}  // namespace

std::vector<RuleTable> symbolic_tables(Loads loads) {
  std::vector<RuleTable> all = ungated_tables();
  const std::span<const RuleTable> valid = valid_tables(loads);
  all.insert(all.end(), valid.begin(), valid.end());
  return all;
}

const RuleSet& ungated_rules() {
  static const RuleSet kRules("ungated", ungated_tables());
  return kRules;
}

const RuleSet& symbolic_rules(Loads loads) {
  static const RuleSet kNarrowing("symbolic", symbolic_tables());
  static const RuleSet kStaying("symbolic, gated", symbolic_tables(Loads::kStay));
  return loads == Loads::kStay ? kStaying : kNarrowing;
}

UOp simplify(UOp root, Trace* trace, Loads loads) {
  return graph_rewrite(root, symbolic_rules(loads),
                       {.shapes = Shapes::kKept, .trace = trace, .pass = "simplify"});
}

}  // namespace weft
