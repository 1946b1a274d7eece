// From a tensor graph to kernels in order.
#include "schedule/schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "rewrite/graph_rewrite.h"
#include "schedule/dependencies.h"
#include "schedule/memory_plan.h"
#include "schedule/rangeify/pipeline.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/roll/roll_graph.h"
#include "schedule/share_kernels.h"

namespace weft {
namespace {

using Kind = ScheduledBuffer::Kind;

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

// The variables without a BIND that each kernel reads.
std::vector<std::vector<BoundVariable>> free_variables(std::span<const Graph> kernels,
                                                       const ScheduleOptions& options) {
  std::vector<std::vector<BoundVariable>> found(kernels.size());
  for (size_t k = 0; k < kernels.size() && !options.variables.empty(); k++) {
    for (UOp n : toposort(kernels[k].root)) {
      if (!n.is(Op::VARIABLE)) continue;
      const auto at = std::ranges::find(options.variables, n.name(), &BoundVariable::name);
      if (at != options.variables.end()) found[k].push_back(*at);
    }
  }
  return found;
}

// The names of the VARIABLEs that each kernel reads.
std::vector<std::unordered_set<std::string>> variables_of(const std::vector<Graph>& kernels) {
  std::vector<std::unordered_set<std::string>> out;
  for (const Graph& kernel : kernels) {
    out.emplace_back();
    for (UOp n : toposort(kernel.root)) {
      if (n.is(Op::VARIABLE)) out.back().emplace(n.name());
    }
  }
  return out;
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
  Schedule s;
  Arena arena;
  UOp sink = options.work_in == WorkIn::kOwnArena ? import_graph(arena, graph) : graph;
  if (sink != order.back()) order = toposort(sink);
  const Inputs inputs = inputs_of(order);
  const std::string device = options.device.empty() ? inputs.device : options.device;

  RolledGraph rolled = roll_graph(sink, order, device);
  if (rolled.sink != sink) order = toposort(rolled.sink);
  sink = run_rangeify_pipeline(std::move(order), options.limits, device, options.trace);
  KernelGraph graph_of_kernels =
      run_kernel_split_pipeline(sink, options.limits, device, options.trace);
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
    if (const auto table = rolled.tables.find(b.number()); table != rolled.tables.end()) {
      buffer.kind = Kind::kTable;
      buffer.data = std::move(table->second);
    }
    s.buffers.push_back(std::move(buffer));
  }
  s.outputs = std::move(ordered.outputs);
  for (uint32_t b : s.outputs) {
    if (s.buffers[b].kind == Kind::kTemp) s.buffers[b].kind = Kind::kOutput;
  }
  s.kernels = graph_of_kernels.asts.take();
  const auto read_variables = variables_of(s.kernels);
  const std::vector<std::vector<BoundVariable>> variables = free_variables(s.kernels, options);
  for (OrderedKernel& k : ordered.kernels) {
    KernelCall call{
        k.kernel, s.kernels[k.kernel].root, std::move(k.name), std::move(k.arguments), k.written,
        {},       std::move(k.waits_for)};
    for (UOp bind : k.variables) {
      const std::string name(bind.src(0).name());
      if (!read_variables[k.kernel].contains(name)) continue;
      call.variables.push_back({name, value_of(bind.src(1), options)});
    }
    const std::vector<BoundVariable>& free = variables[k.kernel];
    call.variables.insert(call.variables.end(), free.begin(), free.end());
    std::ranges::sort(call.variables, {}, &BoundVariable::name);
    s.calls.push_back(std::move(call));
  }
  share_kernels(s);
  plan_memory(s, options.dying);
  return s;
}

size_t Schedule::bytes() const {
  size_t total = 0;
  for (const Graph& kernel : kernels) total += kernel.arena->bytes();
  for (const ScheduledBuffer& b : buffers) total += sizeof(b) + b.data.size() * sizeof(uint64_t);
  for (const KernelCall& c : calls) total += sizeof(c) + c.arguments.size() * sizeof(uint32_t);
  return total;
}

}  // namespace weft
