// Rules that never come to rest, reported as the loop that they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/node.h"

namespace weft {

struct Rule;

enum class LoopKind : uint8_t {
  kCycle,   // a node comes back: a -> b -> a
  kGrowth,  // every step makes a new node, and mostly a larger graph
};

// One step: the node as it was, and the rule that replaced it.
struct LoopStep {
  std::string node;
  std::string rule, file;
  uint32_t line = 0;
  std::string change{};  // where the node differs from what it becomes: "y becomes ... + 0.0"
  std::string around{};  // what the step before has left around the node: "...*2"; mostly nothing
};

struct LoopReport {
  LoopKind kind = LoopKind::kGrowth;
  std::string pass;
  std::vector<LoopStep> lead{};   // of a cycle: from the node of the graph to the first of `steps`
  std::vector<LoopStep> steps{};  // the first ones
  std::string ends_in{};          // the node after the last step that was taken
  size_t length = 0;              // steps that were taken; of a cycle, until it is back
};

class RewriteLoopError : public Error {
 public:
  explicit RewriteLoopError(LoopReport report);

  const LoopReport& report() const { return report_; }
  LoopKind kind() const { return report_.kind; }
  const std::vector<LoopStep>& steps() const { return report_.steps; }
  const std::string& ends_in() const { return report_.ends_in; }
  const std::string& pass() const { return report_.pass; }

 private:
  LoopReport report_;
};

// A step as the engine knows it.
struct LoopLink {
  UOp before, after;
  const Rule* rule;
  bool is_within;  // `before` is a part of what the step before it made, not all of it
};

// The error of the first links: `from` is where the cycle begins.
RewriteLoopError cycle_error(std::string_view pass, std::span<const LoopLink> links, size_t from,
                             UOp back);
RewriteLoopError growth_error(std::string_view pass, std::span<const LoopLink> links);

// How `after` differs from `before`, in the smallest part of them; "..." is what was there. Nothing
// where they have little in common.
std::string change_of(UOp before, UOp after);

}  // namespace weft
