// A Trace that Python holds: it keeps what its steps borrow.
#pragma once

#include <memory>
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

}  // namespace weft::python
