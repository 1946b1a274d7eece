// Steps come from the trace, so a step's left side has the sources that the rule really saw.
#include "tests/rules/check_steps.h"

#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/print.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "rewrite/trace.h"
#include "tests/rules/point.h"

namespace weft::test {
namespace {

std::string fault_of(const TraceStep& step, int points, Random& random) {
  auto said = [&](std::string_view what) {
    return fmt::format("{} {}: {} becomes {}", step.rule->name, what, short_form(step.before),
                       short_form(step.after));
  };
  const DType type = step.before.dtype();
  if (step.after.dtype() != type) return said("changes the dtype");
  for (int i = 0; i < points; i++) {
    Point point(random);
    const std::optional<Value> before = point.value(step.before);
    if (!before || !before->fits) continue;
    const std::optional<Value> after = point.value(step.after);
    if (after && !is_same_value(type, before->number, after->number)) {
      return said(fmt::format("makes {} of {}", text_of_value(type, after->number),
                              text_of_value(type, before->number)));
    }
  }
  return "";
}

}  // namespace

Steps check_steps(UOp root, const RuleSet& rules, std::string_view rule, int points,
                  Random& random) {
  Trace trace;
  graph_rewrite(root, rules, {.trace = &trace, .pass = "check"});
  Steps result;
  for (const TracePass& pass : trace.passes) {
    for (const TraceStep& step : pass.steps) {
      result.fired += step.rule->name == rule ? 1 : 0;
      result.fault = fault_of(step, points, random);
      if (!result.fault.empty()) return result;
    }
  }
  return result;
}

}  // namespace weft::test
