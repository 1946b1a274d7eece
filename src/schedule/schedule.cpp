// From a tensor graph to kernels in order.
#include "schedule/schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "schedule/dependencies.h"
#include "schedule/memory_plan.h"
#include "schedule/rangeify/pipeline.h"
#include "schedule/roll/roll_graph.h"

namespace weft {
namespace {

using Kind = ScheduledBuffer::Kind;

// The device of the graph: all of its memory is there.
std::string device_of(UOp sink) {
  for (UOp n : toposort(sink)) {
    if (n.is(Op::DEVICE)) return std::string(n.name());
  }
  return "REF";
}

std::unordered_set<int64_t> ids_of_buffers(UOp sink) {
  std::unordered_set<int64_t> ids;
  for (UOp n : toposort(sink)) {
    if (n.is(Op::BUFFER)) ids.insert(n.number());
  }
  return ids;
}

}  // namespace

Schedule make_schedule(UOp graph, const ScheduleOptions& options) {
  verify(graph, Stage::kTensor);
  Schedule s;
  s.arena = std::make_shared<Arena>();
  UOp sink = import_graph(*s.arena, graph);
  const std::unordered_set<int64_t> inputs = ids_of_buffers(sink);
  const std::string device = options.device.empty() ? device_of(sink) : options.device;

  RolledGraph rolled = roll_graph(sink, device);
  sink = run_rangeify_pipeline(rolled.sink, options.limits, device, options.trace);
  sink = run_kernel_split_pipeline(sink, options.limits, device, options.trace);
  OrderedKernels ordered = order_kernels(sink);

  for (UOp b : ordered.buffers) {
    ScheduledBuffer buffer{.kind = Kind::kTemp,
                           .dtype = b.dtype(),
                           .size = b.src(0),
                           .device = std::string(b.src(1).name()),
                           .id = b.number()};
    if (inputs.contains(b.number())) buffer.kind = Kind::kInput;
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
  for (OrderedKernel& k : ordered.kernels) {
    verify(k.ast, Stage::kKernel, "split");
    s.calls.push_back({k.ast, std::move(k.name), std::move(k.arguments), std::move(k.variables),
                       k.written, std::move(k.waits_for)});
  }
  plan_memory(s, options.dying);
  return s;
}

}  // namespace weft
