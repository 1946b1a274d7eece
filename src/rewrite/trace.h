// What passes did to a graph, step by step, for people and tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/node.h"

namespace weft {

struct Rule;

struct TraceStep {
  UOp before, after;
  const Rule* rule;
};

struct TracePass {
  std::string name;
  UOp before, after;
  uint64_t nanoseconds = 0;
  std::vector<TraceStep> steps;
};

// Borrows nodes and rules: it is read while their arena and tables live.
struct Trace {
  std::vector<TracePass> passes;

  std::string text() const;  // a line per step
  std::string json() const;  // {"passes": [{"name", "before", "after", "steps": [...]}]}
};

}  // namespace weft
