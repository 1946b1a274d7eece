// Traces as JSON that graphs can be drawn from: every node once, by number.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "ir/node.h"
#include "ir/origins.h"
#include "rewrite/rule.h"
#include "rewrite/trace.h"

namespace weft {

struct TraceGraphOptions {
  const Origins* origins = nullptr;  // lines of nodes, where they are noted
  // What is known of a rule: "proved", "property-tested", ...
  std::function<std::string_view(const Rule&)> status{};
  size_t most_nodes = 200'000;  // graphs of passes behind that are left out
  size_t most_steps = 50'000;
};

// {"nodes": [[op, dtype, [sources], argument, [sites]], ...], sources before users,
//  "rules": [{"name", "file", "line", "text", "status"}],
//  "passes": [{"name", "before", "after", "nanoseconds", "step_count", "steps": [[rule, before,
//              after], ...], "decisions": [{"node", "other", "what", "why", "numbers"}], "notes"}]}
// Nodes and rules are named by number; a graph that was left out is null. Sites are numbers of
// site_of().
nlohmann::json trace_graph(const Trace& trace, const TraceGraphOptions& options = {});

}  // namespace weft
