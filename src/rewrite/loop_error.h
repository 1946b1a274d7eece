// Rules that never come to rest, reported as the loop that they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace weft {

enum class LoopKind : uint8_t {
  kCycle,   // a node comes back: a -> b -> a
  kGrowth,  // every step makes a larger graph
};

// One step: the node as it was, and the rule that replaced it.
struct LoopStep {
  std::string node;
  std::string rule, file;
  uint32_t line = 0;
};

class RewriteLoopError : public Error {
 public:
  // `steps` in order; of a cycle, the last one leads back to the first. `ends_in` is the node after
  // the last step.
  RewriteLoopError(LoopKind kind, std::string pass, std::vector<LoopStep> steps,
                   std::string ends_in);

  LoopKind kind() const { return kind_; }
  const std::vector<LoopStep>& steps() const { return steps_; }
  const std::string& ends_in() const { return ends_in_; }
  const std::string& pass() const { return pass_; }

 private:
  LoopKind kind_;
  std::string pass_;
  std::vector<LoopStep> steps_;
  std::string ends_in_;
};

}  // namespace weft
