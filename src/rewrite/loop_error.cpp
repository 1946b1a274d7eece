// The text of a loop report.
#include "rewrite/loop_error.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace weft {
namespace {

std::string text(LoopKind kind, const std::string& pass, const std::vector<LoopStep>& steps,
                 const std::string& ends_in) {
  std::string out = fmt::format(
      "[rewrite] the rules of {} {}:\n", pass,
      kind == LoopKind::kCycle ? "go round in a cycle" : "make the graph grow without end");
  for (const LoopStep& s : steps) {
    out += fmt::format("  {}\n    -> {} ({}:{})\n", s.node, s.rule, s.file, s.line);
  }
  return out + fmt::format("  {}{}\n", ends_in,
                           kind == LoopKind::kCycle ? "   (where it began)" : "   ...");
}

}  // namespace

RewriteLoopError::RewriteLoopError(LoopKind kind, std::string pass, std::vector<LoopStep> steps,
                                   std::string ends_in)
    : Error(text(kind, pass, steps, ends_in)),
      kind_(kind),
      pass_(std::move(pass)),
      steps_(std::move(steps)),
      ends_in_(std::move(ends_in)) {}

}  // namespace weft
