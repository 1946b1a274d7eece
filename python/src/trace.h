// A Trace that Python holds: it keeps what its steps borrow.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <nanobind/nanobind.h>

#include "core.h"
#include "ir/arena.h"
#include "rewrite/trace.h"

namespace weft::python {

struct PythonTrace {
  Trace trace;
  std::vector<std::shared_ptr<Arena>> arenas;  // of every pass
  std::vector<nb::object> rules;               // RuleSets
};

// A Decision that keeps the nodes alive that it names.
struct DecisionRecord {
  Graph node;
  std::optional<Graph> other;
  Decision decision;

  explicit DecisionRecord(const Decision& d)
      : node(handle(d.node)),
        other(d.other ? std::optional(handle(d.other)) : std::nullopt),
        decision(d) {}
};

}  // namespace weft::python
