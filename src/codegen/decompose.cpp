// The tables of decompose, in the order in which their rules are tried.
#include "codegen/decompose.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/decompose_rules.h"
#include "codegen/target.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "rewrite/trace.h"

namespace weft {
namespace {

std::vector<RuleTable> tables() {
  std::vector<RuleTable> all;
  for (const auto& subject :
       {conversion_tables(), narrow_float_tables(), exp_log_tables(), sin_cos_tables(),
        float_tables(), division_tables(), integer_tables(), random_tables()}) {
    all.insert(all.end(), subject.begin(), subject.end());
  }
  return all;
}

const RuleSet& decompose_rules() {
  static const RuleSet kRules("decompose", tables());
  return kRules;
}

// Ids from the kernel alone: equal kernels give equal programs.
int64_t first_free_register(UOp root) {
  int64_t next = 0;
  for (UOp n : toposort(root)) {
    if (n.is(Op::DEFINE_REG)) next = std::max(next, n.number() + 1);
  }
  return next;
}

}  // namespace

UOp decompose(UOp root, const Target& target, Trace* trace) {
  Decomposition context{target, first_free_register(root)};
  return graph_rewrite(root, decompose_rules(),
                       {.context = &context, .trace = trace, .pass = "decompose"});
}

}  // namespace weft
