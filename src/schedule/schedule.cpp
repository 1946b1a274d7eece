// From a tensor graph to kernels in order.
#include "schedule/schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "rewrite/graph_rewrite.h"
#include "schedule/rangeify/pipeline.h"

namespace weft {
namespace {

// An arena takes whole blocks of memory.
constexpr size_t kLeastOfArena = size_t(64) << 10;

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
  if (options.work_in == WorkIn::kGraphArena) return run_schedule_passes(std::move(order), options);
  const auto arena = std::make_shared<Arena>();
  return run_schedule_passes(toposort(import_graph(*arena, graph)), options);
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
