// The road from a tensor graph to a schedule, pass by pass, and the lists of passes.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "codegen/lower.h"
#include "codegen/opt/opt.h"
#include "core.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "passes.h"
#include "rewrite/pass_list.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "rewrite/trace.h"
#include "rules.h"
#include "schedule/dependencies.h"
#include "schedule/list_calls.h"
#include "schedule/memory_plan.h"
#include "schedule/rangeify/bufferize_to_store.h"
#include "schedule/rangeify/indexing.h"
#include "schedule/rangeify/inline_buffers.h"
#include "schedule/rangeify/kernel_units.h"
#include "schedule/rangeify/patterns.h"
#include "schedule/rangeify/pipeline.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/rangeify/split_patterns.h"
#include "schedule/rangeify/stored_values.h"
#include "schedule/rangeify/transform.h"
#include "schedule/schedule.h"
#include "trace.h"

namespace weft::python {
namespace {

constexpr std::string_view kDevice = "CPU";  // of memory that is made, where nothing says another

// A SINK of the graph, legal as tensors.
UOp tensor_sink(const Graph& g) {
  const UOp root = g.root.is(Op::SINK) ? g.root : sink(g.root.arena(), {&g.root, 1});
  verify(root, Stage::kTensor);
  return root;
}
UOp ranges_sink(const Graph& g) {
  verify(g.root, Stage::kRangeified);
  if (!g.root.is(Op::SINK)) {
    throw nb::value_error(
        fmt::format("a graph on ranges is a SINK, not {}", name_of(g.root.op())).c_str());
  }
  return g.root;
}

// ---- phase 1 alone

struct PhaseOne {
  Graph graph;
  IndexingContext context;
};

PhaseOne* indices_of(const Graph& g, std::string_view target) {
  const UOp root = tensor_sink(g);
  std::unique_ptr<PhaseOne> made(
      new PhaseOne{{g.arena, root}, {*g.arena, target_named(target).limits, std::string(kDevice)}});
  run_rangeify(root, made->context);
  return made.release();
}

const Assigned& assigned(const PhaseOne& p, const Graph& g) {
  const UOp n = import_into(*p.graph.arena, g);
  if (!p.context.has(n)) throw nb::key_error("phase 1 gave this node no indices");
  return p.context[n];
}

// ---- phases 1 to 4

struct Rangeified {
  PythonTrace trace;
};

std::string text_of(const PythonTrace& t) {
  std::string out;
  for (const TracePass& pass : t.trace.passes) {
    out += fmt::format("{}: {} steps of rules{}\n", pass.name, pass.steps.size(),
                       pass.after == pass.before ? ", the same graph" : "");
    for (const Decision& d : pass.decisions) out += fmt::format("  {}\n", d.text());
    out += pass.notes;
  }
  return out;
}

nb::list decisions_in(const PythonTrace& t) {
  nb::list out;
  for (const TracePass& pass : t.trace.passes) {
    for (const Decision& d : pass.decisions) out.append(DecisionRecord(d));
  }
  return out;
}

nb::tuple rangeify(const Graph& g, std::string_view target) {
  const UOp root = tensor_sink(g);
  auto made = std::make_unique<Rangeified>();
  made->trace.arenas.push_back(g.arena);
  const UOp result = run_rangeify_pipeline(toposort(root), target_named(target).limits,
                                           std::string(kDevice), &made->trace.trace);
  return nb::make_tuple(Graph{g.arena, result},
                        nb::cast(made.release(), nb::rv_policy::take_ownership));
}

// ---- phase 5

struct Kernels {
  std::shared_ptr<Arena> arena;
  KernelGraph graph;
  PythonTrace trace;
};

size_t count_of(const Kernels& k, Op op) {
  size_t count = 0;
  for (uint32_t i = 0; i < k.graph.asts.size(); i++) {
    for (UOp n : toposort(k.graph.asts.ast(i))) count += n.is(op) ? 1 : 0;
  }
  return count;
}

// KERNELs of the graph, in the order in which they are met.
std::vector<UOp> kernels_in(const Kernels& k) {
  std::vector<UOp> out;
  for (UOp n : toposort(k.graph.sink)) {
    if (n.is(Op::KERNEL)) out.push_back(n);
  }
  return out;
}

// Of each KERNEL: the memory that DEFINE_GLOBAL i stands for, or the BINDs that it reads.
nb::list sources_of_kernels(const Kernels& k, bool (*is_wanted)(UOp)) {
  nb::list out;
  for (UOp kernel : kernels_in(k)) {
    nb::list each;
    for (UOp s : kernel.srcs().subspan(1)) {
      if (is_wanted(s)) each.append(Graph{k.arena, s});
    }
    out.append(each);
  }
  return out;
}

nb::tuple split_pipeline(const Graph& g, std::string_view target) {
  const UOp root = ranges_sink(g);
  auto made = std::make_unique<Kernels>();
  made->arena = g.arena;
  made->trace.arenas.push_back(g.arena);
  made->graph = run_kernel_split_pipeline(root, target_named(target).limits, std::string(kDevice),
                                          &made->trace.trace);
  const UOp shown = with_asts(made->graph);
  return nb::make_tuple(Graph{g.arena, shown},
                        nb::cast(made.release(), nb::rv_policy::take_ownership));
}

std::string text_of(const Kernels& k) {
  std::string out = fmt::format(
      "{} kernels, {} of them different: {} arguments, {} local memories, "
      "{} ranges\n",
      kernels_in(k).size(), k.graph.asts.size(), count_of(k, Op::DEFINE_GLOBAL),
      count_of(k, Op::DEFINE_LOCAL), count_of(k, Op::RANGE));
  for (UOp kernel : kernels_in(k)) {
    out += fmt::format("  {}:", kernel.name());
    for (UOp s : kernel.srcs().subspan(1)) out += " " + short_form(s, 60);
    out += "\n";
  }
  return out + text_of(k.trace);
}

// ---- order and memory

struct PythonSchedule {
  Schedule schedule;
};

PythonSchedule* ordered(const Kernels& k) {
  KernelGraph graph = k.graph;
  ListedKernels listed;
  listed.ordered = order_kernels(graph);
  std::unordered_set<int64_t> inputs;
  for (const TracePass& pass : k.trace.trace.passes) {  // what was there before phase 5
    for (UOp n : toposort(pass.before)) {
      if (n.is(Op::BUFFER)) inputs.insert(n.number());
    }
    break;
  }
  return new PythonSchedule{list_calls(std::move(listed), graph.asts, inputs, {})};
}

PythonSchedule* planned(const PythonSchedule& s, const std::vector<int64_t>& dying) {
  auto made = std::make_unique<PythonSchedule>(s);
  plan_memory(made->schedule, dying);
  return made.release();
}

PythonSchedule* scheduled(const Graph& g, std::string_view target, std::vector<int64_t> dying,
                          PythonTrace* trace) {
  const UOp root = tensor_sink(g);
  ScheduleOptions options{.limits = target_named(target).limits, .dying = std::move(dying)};
  if (trace != nullptr) options.trace = &trace->trace;
  return new PythonSchedule{make_schedule(root, options)};
}

// ---- lists of passes

nb::tuple row_of(const PassInfo& info) {
  const auto stage = [](const std::optional<Stage>& s) {
    return s ? nb::cast(*s) : nb::object(nb::none());
  };
  return nb::make_tuple(std::string(info.name), std::string(info.what), stage(info.before),
                        stage(info.after));
}

nb::list rows_of_schedule() {
  nb::list out;
  for (const SchedulePass& p : schedule_passes()) out.append(row_of(p.info));
  return out;
}
nb::list rows_of_codegen() {
  nb::list out;
  for (const CodegenPass& p : codegen_passes()) out.append(row_of(p.info));
  return out;
}

// One pass that takes a graph and gives one.
Graph run_named(std::string_view name, const Graph& g, std::string_view target,
                const std::optional<std::string>& opts) {
  const Target t = target_named(target);
  for (const CodegenPass& p : codegen_passes()) {
    if (p.info.name != name) continue;
    verify(g.root, *p.info.before);
    OptList list;
    if (opts) list = parse_opts(*opts);
    Lowering with{t, std::nullopt};
    if (opts) with.opts = list;
    return {g.arena, p.run(g.root, with, nullptr, nullptr)};
  }
  for (const SchedulePass& p : schedule_passes()) {
    if (p.info.name != name || !p.info.before || !p.info.after) continue;
    verify(g.root, *p.info.before);
    const ScheduleOptions options{.limits = t.limits};
    Scheduling work({g.root}, options, std::string(kDevice));
    work.order.clear();
    return {g.arena, p.run(work, nullptr, nullptr)};
  }
  throw nb::value_error(
      fmt::format("no pass from a graph to a graph is called {}: see Pipeline()", name).c_str());
}

// ---- rules of weft's passes

PythonRuleSet* rules_of(std::string_view name) {
  static const std::map<std::string_view, const RuleSet& (*)()> kSets = {
      {"early", early_rules},
      {"bufferize", bufferize_rules},
      {"before split", before_split_rules},
      {"kernel", kernel_rules}};
  const auto at = kSets.find(name);
  if (at == kSets.end()) {
    throw nb::value_error(
        fmt::format("rules are early, bufferize, before split or kernel, not {}", name).c_str());
  }
  std::vector<PythonRuleSet::Part> parts;
  for (const Rule* rule : at->second().rules()) {
    parts.push_back({nb::object(), RuleTable{name, kAnyDType, {rule, 1}}});
  }
  return new PythonRuleSet(std::string(name), std::move(parts));
}

void bind_schedule_object(nb::module_& m) {
  nb::class_<KernelCall>(m, "KernelCall", "One kernel of a schedule on its arguments.")
      .def_ro("kernel", &KernelCall::kernel, "Its number in Schedule.kernels.")
      .def_ro("name", &KernelCall::name)
      .def_ro("arguments", &KernelCall::arguments, "Buffers, by number.")
      .def_ro("written", &KernelCall::written, "So many of the first arguments are written.")
      .def_ro("waits_for", &KernelCall::waits_for, "Earlier calls that must have run.");
  nb::class_<ScheduledBuffer>(m, "ScheduledBuffer", "Memory that a schedule names.")
      .def_prop_ro("kind",
                   [](const ScheduledBuffer& b) {
                     constexpr const char* kinds[] = {"input", "output", "temporary", "table"};
                     return kinds[size_t(b.kind)];
                   })
      .def_ro("size", &ScheduledBuffer::size, "Elements.")
      .def_ro("dtype", &ScheduledBuffer::dtype)
      .def_ro("slot", &ScheduledBuffer::slot, "Buffers of one slot share memory.");
  nb::class_<PythonSchedule>(m, "Schedule", R"(Kernels in an order that can run, and their memory.

>>> t = UOp.buffer(dtypes.float32, 8, "CPU", 0)
>>> s = make_schedule(UOp.sink((t * 2.0).contiguous()))
>>> [call.name for call in s.calls], [b.kind for b in s.buffers]
(['e_8'], ['output', 'input'])
)")
      .def_prop_ro(
          "kernels",
          [](const PythonSchedule& s) {
            nb::list out;
            for (const Graph& k : s.schedule.kernels) out.append(k);
            return out;
          },
          nb::sig("def kernels(self) -> list[UOp]"), "The different ones.")
      .def_prop_ro(
          "calls", [](const PythonSchedule& s) { return s.schedule.calls; },
          "In an order in which they can run.")
      .def_prop_ro(
          "buffers", [](const PythonSchedule& s) { return s.schedule.buffers; },
          "All memory that calls name.")
      .def_prop_ro(
          "outputs", [](const PythonSchedule& s) { return s.schedule.outputs; },
          "Of each source of the SINK, the buffer that holds it at the end.")
      .def_prop_ro(
          "peak_bytes", [](const PythonSchedule& s) { return s.schedule.peak_bytes; },
          "Of the slots that temporaries share.")
      .def("__str__", [](const PythonSchedule& s) {
        return text_of_calls(s.schedule) + text_of_memory(s.schedule);
      });
}

void bind_contexts(nb::module_& m) {
  nb::class_<PhaseOne>(m, "IndexingContext",
                       "What phase 1 found out: indices of every node, and what is stored.")
      .def_prop_ro(
          "graph", [](const PhaseOne& p) { return p.graph; }, "The SINK.")
      .def(
          "indices",
          [](const PhaseOne& p, const Graph& g) {
            return tuple_of(p.graph.arena, p.context.tuple(assigned(p, g).at));
          },
          nb::arg("node"), nb::sig("def indices(self, node: UOp) -> tuple[UOp, ...]"),
          "Where its users want it: of every axis the RANGE, or an expression of some.")
      .def(
          "reduced",
          [](const PhaseOne& p, const Graph& g) {
            return tuple_of(p.graph.arena, p.context.tuple(assigned(p, g).reduced));
          },
          nb::arg("node"), nb::sig("def reduced(self, node: UOp) -> tuple[UOp, ...]"),
          "The RANGEs that a REDUCE_AXIS runs over.")
      .def(
          "storing",
          [](const PhaseOne& p, const Graph& g) {
            constexpr const char* names[] = {"never", "may", "must"};
            return names[size_t(assigned(p, g).storing)];
          },
          nb::arg("node"), "Whether the value is to exist in memory: never, may or must.")
      .def(
          "why",
          [](const PhaseOne& p, const Graph& g) { return weft::text_of(assigned(p, g).cause); },
          nb::arg("node"), "What decided that.")
      .def_prop_ro(
          "decisions",
          [](const PhaseOne& p) {
            nb::list out;
            for (const Decision& d : decisions_of(p.context)) out.append(DecisionRecord(d));
            return out;
          },
          nb::sig("def decisions(self) -> list[Decision]"), "What may, and what must be stored.")
      .def("__str__", [](const PhaseOne& p) { return text(weft::text_of(p.context)); });
  nb::class_<Rangeified>(m, "RangeifyContext", "What phases 1 to 4 did and decided, and why.")
      .def_prop_ro(
          "trace", [](const Rangeified& r) { return r.trace; }, "Every pass.")
      .def_prop_ro(
          "decisions", [](const Rangeified& r) { return decisions_in(r.trace); },
          nb::sig("def decisions(self) -> list[Decision]"),
          "What was stored and what is computed again, and why.")
      .def("__str__", [](const Rangeified& r) { return text(text_of(r.trace)); });
  nb::class_<Kernels>(m, "KernelContext", "What phase 5 cut: kernels, their memory and variables.")
      .def_prop_ro(
          "trace", [](const Kernels& k) { return k.trace; }, "Every pass.")
      .def_prop_ro(
          "decisions", [](const Kernels& k) { return decisions_in(k.trace); },
          nb::sig("def decisions(self) -> list[Decision]"),
          "Of pairs of kernels, why they are not one.")
      .def_prop_ro(
          "kernels",
          [](const Kernels& k) {
            nb::list out;
            for (uint32_t i = 0; i < k.graph.asts.size(); i++)
              out.append(handle(k.graph.asts.ast(i)));
            return out;
          },
          nb::sig("def kernels(self) -> list[UOp]"), "The different ones.")
      .def_prop_ro(
          "names",
          [](const Kernels& k) {
            std::vector<std::string> out;
            for (UOp n : kernels_in(k)) out.emplace_back(n.name());
            return out;
          },
          "Of every KERNEL of the graph.")
      .def_prop_ro(
          "buffers",
          [](const Kernels& k) {
            return sources_of_kernels(k, [](UOp s) { return !s.is(Op::BIND); });
          },
          nb::sig("def buffers(self) -> list[list[UOp]]"),
          "Of every KERNEL: the memory that DEFINE_GLOBAL i of it stands for.")
      .def_prop_ro(
          "variables",
          [](const Kernels& k) {
            return sources_of_kernels(k, [](UOp s) { return s.is(Op::BIND); });
          },
          nb::sig("def variables(self) -> list[list[UOp]]"),
          "Of every KERNEL: the BINDs that its call evaluates.")
      .def_prop_ro(
          "global_count", [](const Kernels& k) { return count_of(k, Op::DEFINE_GLOBAL); },
          "DEFINE_GLOBALs of the different kernels.")
      .def_prop_ro(
          "local_count", [](const Kernels& k) { return count_of(k, Op::DEFINE_LOCAL); },
          "DEFINE_LOCALs of the different kernels.")
      .def_prop_ro(
          "range_count", [](const Kernels& k) { return count_of(k, Op::RANGE); },
          "RANGEs of the different kernels.")
      .def("__str__", [](const Kernels& k) { return text(text_of(k)); });
}

}  // namespace

void bind_passes(nb::module_& m) {
  bind_contexts(m);
  bind_schedule_object(m);
  m.def("schedule_pass_rows", rows_of_schedule,
        nb::sig("def schedule_pass_rows() -> list[tuple[str, str, Stage | None, Stage | None]]"))
      .def("codegen_pass_rows", rows_of_codegen,
           nb::sig("def codegen_pass_rows() -> list[tuple[str, str, Stage | None, Stage | None]]"))
      .def("run_rangeify", indices_of, nb::arg("graph"), nb::arg("target") = "LLVM",
           nb::rv_policy::take_ownership,
           R"(Phase 1 alone: the indices of every node, from users to sources.

>>> x = UOp.buffer(dtypes.float32, 6, "CPU", 0).reshape(2, 3)
>>> e = x.exp2()
>>> context = run_rangeify(UOp.sink((e / e.reduce_axis(Ops.ADD, 1).expand(2, 3)).contiguous()))
>>> context.storing(e), context.why(e)
('may', 'its users want other indices, or use it repeatedly')
)")
      .def(
          "transform",
          [](const PhaseOne& p) {
            return Graph{p.graph.arena, transform_to_ranges(p.graph.root, p.context)};
          },
          nb::arg("context"), nb::sig("def transform(context: IndexingContext) -> UOp"),
          "Phase 2 alone: the graph on ranges, of what phase 1 found out.")
      .def(
          "inline_buffers",
          [](const Graph& g, std::string_view target) {
            std::vector<Decision> decisions;
            const UOp result =
                inline_buffers(ranges_sink(g), target_named(target).limits, &decisions);
            nb::list list;
            for (const Decision& d : decisions) list.append(DecisionRecord(d));
            return nb::make_tuple(Graph{g.arena, result}, list);
          },
          nb::arg("graph"), nb::arg("target") = "LLVM",
          nb::sig("def inline_buffers(graph: UOp, target: str = 'LLVM') "
                  "-> tuple[UOp, list[Decision]]"),
          "Phase 3's decisions: what is stored, what is computed again, and the numbers compared.")
      .def(
          "bufferize_to_store",
          [](const Graph& g) { return Graph{g.arena, bufferize_to_store(ranges_sink(g))}; },
          nb::arg("graph"), nb::sig("def bufferize_to_store(graph: UOp) -> UOp"),
          "Phase 5, first step: BUFFERIZE into memory, STORE and END.")
      .def(
          "form_kernels",
          [](const Graph& g, std::string_view target) {
            std::vector<Decision> decisions;
            nb::list units, list;
            for (const KernelUnit& unit :
                 form_kernels(ranges_sink(g), target_named(target).limits, &decisions)) {
              nb::list writes;
              for (const StoredValue& w : unit) writes.append(Graph{g.arena, w.node});
              units.append(writes);
            }
            for (const Decision& d : decisions) list.append(DecisionRecord(d));
            return nb::make_tuple(units, list);
          },
          nb::arg("graph"), nb::arg("target") = "LLVM",
          nb::sig("def form_kernels(graph: UOp, target: str = 'LLVM') "
                  "-> tuple[list[list[UOp]], list[Decision]]"),
          "Phase 5: which writes share a kernel, and of pairs of kernels why they are not one.")
      .def(
          "split_store",
          [](const Graph& g, std::string_view target, uint32_t kernel) {
            const UOp root = ranges_sink(g);
            const std::vector<KernelUnit> units = form_kernels(root, target_named(target).limits);
            NodeMap kernel_of(*g.arena);
            for (size_t k = 0; k < units.size(); k++) {
              for (const StoredValue& w : units[k]) kernel_of.put_number(w.node, k + 1);
            }
            if (kernel >= units.size()) {
              throw nb::index_error(fmt::format("there are {} kernels", units.size()).c_str());
            }
            std::vector<UOp> effects, memories, variables;
            for (const StoredValue& w : units[kernel]) effects.push_back(w.node);
            const std::shared_ptr<Arena> into = make_arena();
            const UOp ast =
                split_store(*into, sink(*g.arena, effects), kernel_of, kernel, memories, variables);
            return nb::make_tuple(Graph{into, ast}, tuple_of(g.arena, memories),
                                  tuple_of(g.arena, variables));
          },
          nb::arg("graph"), nb::arg("target") = "LLVM", nb::arg("kernel") = 0,
          nb::sig("def split_store(graph: UOp, target: str = 'LLVM', kernel: int = 0) "
                  "-> tuple[UOp, tuple[UOp, ...], tuple[UOp, ...]]"),
          "Phase 5, one kernel of a graph of writes: its ast, the memory of each argument, BINDs.")
      .def("rangeify", rangeify, nb::arg("graph"), nb::arg("target") = "LLVM",
           nb::sig("def rangeify(graph: UOp, target: str = 'LLVM') "
                   "-> tuple[UOp, RangeifyContext]"),
           R"(Phases 1 to 4: the graph on ranges, and what was decided.

>>> x = UOp.buffer(dtypes.float32, 6, "CPU", 0).reshape(2, 3)
>>> e = x.exp2()
>>> graph, context = rangeify(UOp.sink((e / e.reduce_axis(Ops.ADD, 1).expand(2, 3)).contiguous()))
>>> [d.what for d in context.decisions]
['may be stored', 'may be stored', 'must be stored', 'recomputed', 'recomputed']
>>> print(context.decisions[-1].why)
to store it would not take clearly less time
)")
      .def("run_kernel_split_pipeline", split_pipeline, nb::arg("graph"),
           nb::arg("target") = "LLVM",
           nb::sig("def run_kernel_split_pipeline(graph: UOp, target: str = 'LLVM') "
                   "-> tuple[UOp, KernelContext]"),
           "Phase 5: the graph of KERNELs, each with its ast, and what they were cut into.")
      .def("order_kernels", ordered, nb::arg("kernels"), nb::rv_policy::take_ownership,
           "Calls in an order that can run; the memory is not planned yet.")
      .def("plan_memory", planned, nb::arg("schedule"), nb::arg("dying") = std::vector<int64_t>(),
           nb::rv_policy::take_ownership,
           "The schedule with slots that its buffers share; `dying` are BUFFERs, by id, that "
           "nobody reads afterwards.")
      .def("make_schedule", scheduled, nb::arg("graph"), nb::arg("target") = "LLVM",
           nb::arg("dying") = std::vector<int64_t>(), nb::arg("trace") = nb::none(),
           nb::rv_policy::take_ownership, "All passes of the scheduler: a trace gets every one.")
      .def("run_pass", run_named, nb::arg("name"), nb::arg("graph"), nb::arg("target") = "LLVM",
           nb::arg("opts") = nb::none(),
           nb::sig("def run_pass(name: str, graph: UOp, target: str = 'LLVM', "
                   "opts: str | None = None) -> UOp"),
           R"(One pass of Pipeline() that turns a graph into a graph.

>>> i = UOp.range(100, 0)
>>> x = UOp.define_global(dtypes.float32, 100, 0)
>>> kernel = UOp.sink(x.index(i).assign(x.index(i).load() * 2).end(i))
>>> run_pass("linearize", kernel).op
Ops.LINEAR
)")
      .def("rules_of", rules_of, nb::arg("name"), nb::rv_policy::take_ownership,
           nb::sig("def rules_of(name: str) -> RuleSet"),
           R"(The rules of a pass of the scheduler: early, bufferize, before split or kernel.

>>> rules_of("bufferize").names
['dead-axis', 'index-of-dead-axis', 'index-of-copy', 'index-of-widened']
)");
}

}  // namespace weft::python
