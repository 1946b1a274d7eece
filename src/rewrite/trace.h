// What passes did to a graph, step by step, for people and tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/node.h"

namespace weft {

struct Rule;

struct TraceStep {
  UOp before, after;
  const Rule* rule;
};

// What a pass decided about a node, and the rule or bound that decided it.
struct Decision {
  UOp node;
  UOp other;              // that it was compared with; null: none
  std::string_view what;  // "stored", "recomputed", "apart", ...
  std::string_view why;
  std::vector<std::pair<std::string_view, double>> numbers{};  // that were compared

  std::string text() const;  // "BUFFERIZE(...): stored, because ... (a 1, b 2)"
};

struct TracePass {
  std::string name;
  UOp before, after;
  uint64_t nanoseconds = 0;
  std::vector<TraceStep> steps;
  std::vector<Decision> decisions{};
  std::string notes{};  // lines on what it made beside the graph: indices, calls, memory
};

// Borrows nodes and rules: it is read while their arenas and tables live.
struct Trace {
  std::vector<TracePass> passes;
  // Arenas and tables that would else be gone with the passes.
  std::vector<std::shared_ptr<const void>> owners{};

  std::string text() const;  // a line per step
  std::string json() const;  // {"passes": [{"name", "before", "after", "steps": [...],
                             // "decisions": [...], "notes"}]}
};

}  // namespace weft
