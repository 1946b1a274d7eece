// Lists of passes: what each is called, what it is for, and how one is run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/trace.h"
#include "rewrite/user_passes.h"

namespace weft {

// One pass of a list.
struct PassInfo {
  std::string_view name;
  std::string_view what;  // it does, for people
  // Of the graph that it is given and of the one that it gives, where passes of users may stand;
  // none: what the passes hand on beside the graph names its nodes.
  std::optional<Stage> before, after;
};

// Runs a pass with those of users around it, and records it: one entry for the pass, with all steps
// of rules and decisions of what it calls. `pass(graph, trace, notes)` returns the graph after it;
// `notes` is a string for the trace, null without one.
template <class Run>
UOp run_pass(const PassInfo& info, UOp graph, Trace* trace, Run&& pass) {
  using Where = UserPass::Where;
  if (info.before) graph = run_user_passes(graph, info.name, Where::kBefore, *info.before, trace);
  if (trace == nullptr) {
    graph = pass(graph, nullptr, nullptr);
  } else {
    const uint64_t start = now_ns();
    Trace inner;
    TracePass entry{std::string(info.name), graph, graph, 0, {}};
    entry.after = pass(graph, &inner, &entry.notes);
    entry.nanoseconds = now_ns() - start;
    for (TracePass& p : inner.passes) {
      entry.steps.insert(entry.steps.end(), p.steps.begin(), p.steps.end());
      entry.decisions.insert(entry.decisions.end(), p.decisions.begin(), p.decisions.end());
    }
    trace->owners.insert(trace->owners.end(), inner.owners.begin(), inner.owners.end());
    graph = entry.after;
    trace->passes.push_back(std::move(entry));
  }
  if (info.after) graph = run_user_passes(graph, info.name, Where::kAfter, *info.after, trace);
  return graph;
}

}  // namespace weft
