// Graphs of many small writes as loop programs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/node.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/roll/loop_events.h"
#include "schedule/roll/progression.h"
#include "schedule/schedule.h"

namespace weft {

// Whether there may be something to gain: cheap, for all graphs.
bool has_many_statements(std::span<const UOp> order, const KernelLimits& limits);

struct LoopSchedule {
  KernelGraph graph;
  Tables tables;  // contents of the BUFFERs that were made
  // Of each source of the SINK, where it lies in its memory: all of it, or from an element on.
  std::vector<std::optional<int64_t>> firsts;
};

// Runs the graph statement after statement (loop_statements.h) where it consists of many small ones
// that repeat: those in few kernels with loops (loop_kernel.h), the others between them, each by
// the other passes. None where that does not pay; then `refusal` says why, if there are many
// writes. `order` is all of the graph, sources first.
std::optional<LoopSchedule> run_as_loops(std::span<const UOp> order, const KernelLimits& limits,
                                         const std::string& device, OutputMemory outputs,
                                         LoopRefusal& refusal);

}  // namespace weft
