// Traces of passes, and the statistics of rules.
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "base/config.h"
#include "core.h"
#include "ir/arena.h"
#include "ir/print.h"
#include "rewrite/rule.h"
#include "rewrite/statistics.h"
#include "rewrite/trace.h"
#include "trace.h"

namespace weft::python {
namespace {

// Copies, with what they borrow.
struct StepRecord {
  Graph before, after;
  std::string rule, file;
  uint32_t line;
};
struct PassRecord {
  std::string name;
  Graph before, after;
  uint64_t nanoseconds;
  nb::list steps, decisions;
  std::string notes;
};

nb::list passes_of(const PythonTrace& t) {
  nb::list out;
  for (const TracePass& p : t.trace.passes) {
    nb::list steps;
    for (const TraceStep& s : p.steps) {
      steps.append(StepRecord{handle(s.before), handle(s.after), std::string(s.rule->name),
                              s.rule->file, s.rule->line});
    }
    nb::list decisions;
    for (const Decision& d : p.decisions) decisions.append(DecisionRecord(d));
    out.append(PassRecord{p.name, handle(p.before), handle(p.after), p.nanoseconds, steps,
                          decisions, p.notes});
  }
  return out;
}

int traverse_trace(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::object& o : nb::inst_ptr<PythonTrace>(self)->rules) Py_VISIT(o.ptr());
  return 0;
}
int clear_trace(PyObject* self) {
  auto& t = *nb::inst_ptr<PythonTrace>(self);
  t.trace.passes.clear();
  t.rules.clear();
  return 0;
}
PyType_Slot trace_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_trace)},
                             {Py_tp_clear, reinterpret_cast<void*>(clear_trace)},
                             {0, nullptr}};

void bind_statistics(nb::module_& m) {
  nb::class_<RuleStatistic>(m, "RuleStatistic", "What the process counted of one rule.")
      .def_ro("name", &RuleStatistic::name)
      .def_ro("file", &RuleStatistic::file)
      .def_ro("line", &RuleStatistic::line)
      .def_prop_ro("tried", [](const RuleStatistic& s) { return s.count.tried; })
      .def_prop_ro("fired", [](const RuleStatistic& s) { return s.count.fired; })
      .def_prop_ro("nanoseconds", [](const RuleStatistic& s) { return s.count.nanoseconds; })
      .def("__repr__", [](const RuleStatistic& s) {
        return fmt::format("{}: tried {}, fired {} ({}:{})", s.name, s.count.tried, s.count.fired,
                           s.file, s.line);
      });
  m.def(
       "rule_statistics",
       [] {
         nb::list out;
         for (const RuleStatistic& s : rule_statistics()) out.append(s);
         return out;
       },
       nb::sig("def rule_statistics() -> list[RuleStatistic]"),
       R"(How often each rule was tried and fired, the slowest first, while stats were on.

>>> old = set_stats(1)
>>> u = (UOp.range(4, 0) * 1).simplify()
>>> sum(s.fired for s in rule_statistics())
1
>>> reset_rule_statistics()
>>> set_stats(old)
1
)")
      .def("reset_rule_statistics", reset_rule_statistics, "Counts from zero again.")
      .def(
          "set_stats",
          [](int level) {
            if (level < 0 || level > 2) throw nb::value_error("[set_stats] a level is 0, 1 or 2");
            return std::exchange(config().stats, level);
          },
          nb::arg("level"),
          "1 counts rules, 2 also prints every match, 0 stops. Returns the level before; the "
          "environment's WEFT_STATS is the first.");
}

}  // namespace

void bind_trace(nb::module_& m) {
  nb::class_<StepRecord>(m, "TraceStep", "One match: a node, and what a rule made of it.")
      .def_ro("before", &StepRecord::before)
      .def_ro("after", &StepRecord::after)
      .def_ro("rule", &StepRecord::rule, "The name of the rule.")
      .def_ro("file", &StepRecord::file)
      .def_ro("line", &StepRecord::line)
      .def("__repr__", [](const StepRecord& s) {
        return text(fmt::format("{}: {} -> {}", s.rule, short_form(s.before.root, 80),
                                short_form(s.after.root, 80)));
      });
  nb::class_<DecisionRecord>(m, "Decision",
                             "What a pass decided about a node, and what decided it.")
      .def_ro("node", &DecisionRecord::node)
      .def_ro("other", &DecisionRecord::other, "What the node was compared with.")
      .def_prop_ro(
          "what", [](const DecisionRecord& d) { return d.decision.what; },
          "stored, recomputed, two kernels, ...")
      .def_prop_ro(
          "why", [](const DecisionRecord& d) { return d.decision.why; },
          "The rule or bound that decided.")
      .def_prop_ro(
          "numbers",
          [](const DecisionRecord& d) {
            nb::dict out;
            for (const auto& [name, value] : d.decision.numbers) {
              out[nb::str(name.data(), name.size())] = value;
            }
            return out;
          },
          nb::sig("def numbers(self) -> dict[str, float]"), "What was compared.")
      .def("__repr__", [](const DecisionRecord& d) { return text(d.decision.text()); });
  nb::class_<PassRecord>(m, "TracePass", "One rewrite of a graph.")
      .def_ro("name", &PassRecord::name)
      .def_ro("before", &PassRecord::before)
      .def_ro("after", &PassRecord::after)
      .def_ro("nanoseconds", &PassRecord::nanoseconds)
      .def_prop_ro(
          "steps", [](const PassRecord& p) { return p.steps; },
          nb::sig("def steps(self) -> list[TraceStep]"))
      .def_prop_ro(
          "decisions", [](const PassRecord& p) { return p.decisions; },
          nb::sig("def decisions(self) -> list[Decision]"), "What it decided, and why.")
      .def_prop_ro(
          "notes", [](const PassRecord& p) { return text(p.notes); },
          "What it made beside the graph, in lines.")
      .def("__repr__", [](const PassRecord& p) {
        return nb::str("TracePass({}, {} steps)").format(p.name, p.steps.size());
      });
  nb::class_<PythonTrace>(
      m, "Trace", nb::type_slots(trace_slots),
      R"(What rewrites did, step by step: hand one to simplify() or graph_rewrite().

>>> trace = Trace()
>>> u = (UOp.range(4, 0) * 1).simplify(trace=trace)
>>> trace.passes[0].steps
[mul-one: r0*1 -> r0]
)")
      .def(nb::init<>())
      .def_prop_ro("passes", passes_of, nb::sig("def passes(self) -> list[TracePass]"),
                   "The rewrites so far. One that raised is there with the steps it did.")
      .def(
          "text", [](const PythonTrace& t) { return text(t.trace.text()); }, "A line per step.")
      .def(
          "json", [](const PythonTrace& t) { return t.trace.json(); },
          "{'passes': [{'name', 'before', 'after', 'steps': [...]}]} as JSON.");
  bind_statistics(m);
}

}  // namespace weft::python
