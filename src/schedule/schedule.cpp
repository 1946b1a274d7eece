// From a tensor graph to kernels in order.
#include "schedule/schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/phases.h"
#include "ir/arena.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "rewrite/graph_rewrite.h"
#include "schedule/dependencies.h"
#include "schedule/kernel_table.h"
#include "schedule/memory_plan.h"
#include "schedule/rangeify/pipeline.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/roll/loop_events.h"
#include "schedule/roll/roll_graph.h"
#include "schedule/roll/run_as_loops.h"
#include "schedule/share_kernels.h"

namespace weft {
namespace {

using Kind = ScheduledBuffer::Kind;

// An arena takes whole blocks of memory.
constexpr size_t kLeastOfArena = size_t(64) << 10;

struct Inputs {
  std::unordered_set<int64_t> buffers;  // ids
  std::string device = "REF";           // of the first one
};

Inputs inputs_of(std::span<const UOp> order) {
  Inputs in;
  for (UOp n : order) {
    if (!n.is(Op::BUFFER)) continue;
    if (in.buffers.empty()) in.device = n.src(1).name();
    in.buffers.insert(n.number());
  }
  return in;
}

// The value of a size or of a bound variable in this call.
int64_t value_of(UOp n, const ScheduleOptions& options) {
  if (n.is_const()) return n.const_int();
  Bindings bindings;
  for (const BoundVariable& v : options.variables) bindings.variables[v.name] = v.value;
  return evaluate(n, bindings).at(0).ints().at(0);
}

// The variables without a BIND that a kernel reads.
std::vector<BoundVariable> free_variables(const KernelFacts& facts,
                                          const ScheduleOptions& options) {
  std::vector<BoundVariable> found;
  for (const BoundVariable& v : options.variables) {
    if (facts.variables.contains(v.name)) found.push_back(v);
  }
  return found;
}

}  // namespace

Schedule make_schedule(UOp graph, const ScheduleOptions& options) {
  return make_schedule(toposort(graph), options);
}

Schedule make_schedule(std::vector<UOp> order, const ScheduleOptions& options) {
  const UOp graph = order.back();
  // What the engine hands over with its arena it has made itself: builds for development check it.
  const bool is_own = options.work_in == WorkIn::kGraphArena;
  if (!is_own || kVerifyByDefault == Verify::kEveryPass) verify(graph, Stage::kTensor);
  if (!graph.is(Op::SINK)) {
    throw SpecError("[schedule] the graph is " + short_form(graph, 60) +
                    "; it must be a SINK of what is to be made");
  }
  Schedule s;
  Arena arena;
  UOp sink = options.work_in == WorkIn::kOwnArena ? import_graph(arena, graph) : graph;
  if (sink != order.back()) order = toposort(sink);
  const Inputs inputs = inputs_of(order);
  const std::string device = options.device.empty() ? inputs.device : options.device;

  LoopRefusal refusal;
  std::optional<LoopSchedule> loops;
  RolledGraph rolled{sink, {}};
  {
    const PhaseTimer timer(Phase::kRoll);
    const bool has_writes = std::ranges::any_of(order, [](UOp n) { return n.is(Op::STORE); });
    if (!has_writes) rolled = roll_graph(sink, order, device);
    if (rolled.sink == sink) {
      loops = run_as_loops(order, options.limits, device, options.outputs, refusal);
    }
    if (!loops && has_writes) rolled = roll_graph(sink, order, device);
  }
  if (!loops) {
    if (rolled.sink != sink) order = toposort(rolled.sink);
    {
      const PhaseTimer timer(Phase::kRangeify);
      sink = run_rangeify_pipeline(std::move(order), options.limits, device, options.trace);
    }
    const PhaseTimer timer(Phase::kSplit);
    loops = {run_kernel_split_pipeline(sink, options.limits, device, options.trace),
             std::move(rolled.tables),
             {}};
  }
  const PhaseTimer timer(Phase::kSplit);
  KernelGraph& graph_of_kernels = loops->graph;
  OrderedKernels ordered = order_kernels(graph_of_kernels);

  for (UOp b : ordered.buffers) {
    ScheduledBuffer buffer{.kind = Kind::kTemp,
                           .dtype = b.dtype(),
                           .size = value_of(b.src(0), options),
                           .device = std::string(b.src(1).name()),
                           .id = b.number()};
    if (!b.src(0).is_const()) {
      if (!s.formulas) s.formulas = std::make_shared<Arena>();
      buffer.formula = import_graph(*s.formulas, b.src(0));
    }
    if (inputs.buffers.contains(b.number())) buffer.kind = Kind::kInput;
    if (std::ranges::find(options.tables, b.number()) != options.tables.end()) {
      buffer.kind = Kind::kTable;
    }
    if (const auto table = loops->tables.find(b.number()); table != loops->tables.end()) {
      buffer.kind = Kind::kTable;
      buffer.data = std::move(table->second);
    }
    s.buffers.push_back(std::move(buffer));
  }
  s.outputs = std::move(ordered.outputs);
  s.output_firsts = std::move(loops->firsts);
  if (refusal.node) s.why_no_loops = refusal.reason + ": " + short_form(refusal.node, 60);
  for (uint32_t b : s.outputs) {
    if (s.buffers[b].kind == Kind::kTemp) s.buffers[b].kind = Kind::kOutput;
  }
  s.kernels = graph_of_kernels.asts.take();
  for (OrderedKernel& k : ordered.kernels) {
    KernelCall call{
        k.kernel, s.kernels[k.kernel].root, std::move(k.name), std::move(k.arguments), k.written,
        {},       std::move(k.waits_for)};
    const KernelFacts& facts = graph_of_kernels.asts.facts(k.kernel);
    for (UOp bind : k.variables) {
      const std::string name(bind.src(0).name());
      if (!facts.variables.contains(name)) continue;
      call.variables.push_back({name, value_of(bind.src(1), options)});
    }
    const std::vector<BoundVariable> free = free_variables(facts, options);
    call.variables.insert(call.variables.end(), free.begin(), free.end());
    std::ranges::sort(call.variables, {}, &BoundVariable::name);
    s.calls.push_back(std::move(call));
  }
  share_kernels(s, graph_of_kernels.asts);
  plan_memory(s, options.dying);
  return s;
}

size_t Schedule::bytes() const {
  size_t total = 0;
  for (const Graph& kernel : kernels) {
    total += std::max(kernel.arena->bytes(), kLeastOfArena) + kernel.arena->side_table_bytes();
  }
  for (const ScheduledBuffer& b : buffers) total += sizeof(b) + b.data.size() * sizeof(uint64_t);
  for (const KernelCall& c : calls) total += sizeof(c) + c.arguments.size() * sizeof(uint32_t);
  return total;
}

}  // namespace weft
