// The scheduler's passes, and the parts of their list that run alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/phases.h"
#include "ir/node.h"
#include "rewrite/pass_list.h"
#include "rewrite/trace.h"
#include "schedule/kernel_table.h"
#include "schedule/list_calls.h"
#include "schedule/rangeify/indexing.h"
#include "schedule/rangeify/kernel_units.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/schedule.h"

namespace weft {

// What the passes hand on to each other.
struct Scheduling {
  Scheduling(std::vector<UOp> nodes, const ScheduleOptions& with, std::string on)
      : options(with), device(std::move(on)), sink(nodes.back()), order(std::move(nodes)) {}

  const ScheduleOptions& options;
  std::string device;          // of memory that is made
  UOp sink;                    // the graph now
  std::vector<UOp> order;      // all of it, sources first, the SINK last; empty: not known
  bool has_writes = true;      // it has STOREs
  bool has_early_work = true;  // it has what the early rules match
  std::optional<IndexingContext> indexing{};  // of phase 1
  std::vector<KernelUnit> units{};            // which writes share a kernel
  KernelTable asts{};
  std::optional<KernelGraph> kernels{};  // once it is split
  bool runs_as_loops = false;            // and was split by running as a loop program
  bool is_rolled = false;                // chains of it are loops
  std::unordered_set<int64_t> inputs{};  // ids of BUFFERs that exist
  ListedKernels listed{};
  std::string why_no_loops{};
  Schedule schedule{};

  const KernelLimits& limits() const { return options.limits; }
  const std::vector<UOp>& nodes();  // `order`, made if it is not known
  void set_graph(UOp graph);
};

enum class SchedulePart : uint8_t { kRoll, kRangeify, kSplit, kOrder };

struct SchedulePass {
  PassInfo info;
  SchedulePart part;
  // Changes the graph of the work, or what it hands on, and returns what a trace shows.
  UOp (*run)(Scheduling& work, Trace* trace, std::string* notes);
};

// All of them, in the order in which they run.
std::span<const SchedulePass> schedule_passes();

// The whole list. `order` has the nodes of a tensor graph, sources first, the SINK last, in an
// arena that a shared_ptr owns.
Schedule run_schedule_passes(std::vector<UOp> order, const ScheduleOptions& options);

// Phases 1 to 4: the graph on ranges, with what is stored decided.
UOp run_rangeify_pipeline(std::vector<UOp> order, const KernelLimits& limits,
                          const std::string& device, Trace* trace);

// Phase 5: the graph of kernels, which are added to `asts`.
KernelGraph run_kernel_split_pipeline(UOp sink, const KernelLimits& limits,
                                      const std::string& device, Trace* trace,
                                      KernelTable asts = {});

}  // namespace weft
