// The list of the scheduler's passes, in order.
#include "schedule/rangeify/pipeline.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/phases.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/pass_list.h"
#include "rewrite/rule_set.h"
#include "rewrite/trace.h"
#include "schedule/dependencies.h"
#include "schedule/kernel_table.h"
#include "schedule/list_calls.h"
#include "schedule/machine.h"
#include "schedule/memory_plan.h"
#include "schedule/rangeify/bufferize_to_store.h"
#include "schedule/rangeify/indexing.h"
#include "schedule/rangeify/inline_buffers.h"
#include "schedule/rangeify/kernel_units.h"
#include "schedule/rangeify/merge_reductions.h"
#include "schedule/rangeify/order_writes.h"
#include "schedule/rangeify/patterns.h"
#include "schedule/rangeify/separate_versions.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/rangeify/split_patterns.h"
#include "schedule/rangeify/split_reductions.h"
#include "schedule/rangeify/stage_hazards.h"
#include "schedule/rangeify/transform.h"
#include "schedule/roll/loop_events.h"
#include "schedule/roll/roll_graph.h"
#include "schedule/roll/run_as_loops.h"
#include "schedule/schedule.h"
#include "schedule/share_kernels.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

using Work = Scheduling;
using Notes = std::string*;

// A trace's entry for a pass whose decisions are to be known.
std::vector<Decision>* decisions_in(Trace* trace, std::string_view name, UOp graph) {
  if (trace == nullptr) return nullptr;
  trace->passes.push_back({std::string(name), graph, graph, 0, {}});
  return &trace->passes.back().decisions;
}

// ---- roll

UOp run_loops(Work& w) {
  LoopRefusal refusal;
  std::optional<LoopSchedule> made =
      run_as_loops(w.nodes(), w.limits(), w.device, w.options.outputs, refusal);
  if (refusal.node) w.why_no_loops = refusal.reason + ": " + short_form(refusal.node, 60);
  if (!made) return w.sink;
  w.kernels = std::move(made->graph);
  w.listed.tables = std::move(made->tables);
  w.listed.firsts = std::move(made->firsts);
  w.runs_as_loops = true;
  return w.sink;
}

// Whether loops that one write closes are all that there is: on a device whose threads share them
// out, these are better than a loop program.
bool rolls_up(Work& w) {
  const UOp rolled = roll_graph(w.sink, w.nodes(), w.device).sink;
  return rolled != w.sink && !has_many_statements(toposort(rolled), w.limits());
}

UOp loops(Work& w, Trace*, Notes) {
  w.has_writes = std::ranges::any_of(w.nodes(), [](UOp n) { return n.is(Op::STORE); });
  if (!w.has_writes || (!w.limits().sequences && rolls_up(w))) return w.sink;
  return run_loops(w);
}

UOp roll(Work& w, Trace*, Notes) {
  RolledGraph rolled = roll_graph(w.sink, w.nodes(), w.device);
  w.listed.tables = std::move(rolled.tables);
  w.is_rolled = rolled.sink != w.sink;
  w.set_graph(rolled.sink);
  return w.sink;
}

UOp loops_of_values(Work& w, Trace*, Notes) {
  return w.has_writes || w.is_rolled ? w.sink : run_loops(w);
}

// ---- rangeify

UOp early(Work& w, Trace* trace, Notes) {
  w.has_writes = w.has_early_work = false;
  for (UOp n : w.nodes()) {
    w.has_writes = w.has_writes || n.is(Op::STORE);
    w.has_early_work = w.has_early_work || early_rules().has_rules_for(n.op());
    shape_of(n);  // asked for in this order, none of them takes a walk
  }
  if (w.has_early_work) {
    w.set_graph(graph_rewrite(w.sink, early_rules(), {.trace = trace, .pass = "early"}));
  }
  return w.sink;
}

// Sources of the SINK that are no memory as it lies are stored.
UOp store_sources(Work& w, Trace*, Notes) {
  constexpr OpSet k_memory = {Op::BUFFER, Op::AFTER, Op::CONTIGUOUS, Op::COPY};
  std::vector<UOp> srcs;
  for (UOp s : w.sink.srcs()) {
    UOp base = s;
    while (base.is(Op::RESHAPE)) base = base.src(0);
    srcs.push_back(k_memory.has(base.op()) ? s : contiguous(s));
  }
  w.set_graph(w.sink.arena().with_srcs(w.sink, srcs));
  return w.sink;
}

UOp split_large_reductions(Work& w, Trace*, Notes) {
  const Machine& m = w.limits().machine;
  const size_t iterations = m.threads > 1 ? size_t(m.units * m.threads) : 0;
  if (w.limits().pieces > 1) {
    w.set_graph(split_reductions(w.sink, w.limits().pieces, iterations));
  }
  return w.sink;
}

UOp separate(Work& w, Trace*, Notes) {
  if (w.has_writes) w.set_graph(separate_versions(w.sink, w.limits().writes));
  return w.sink;
}

UOp assign_ranges(Work& w, Trace* trace, Notes notes) {
  w.indexing.emplace(w.sink.arena(), w.limits(), w.device);
  w.indexing->order = std::move(w.order);
  w.order.clear();
  run_rangeify(w.sink, *w.indexing);
  if (notes != nullptr) *notes = text_of(*w.indexing);
  if (auto* decisions = decisions_in(trace, "rangeify", w.sink)) {
    *decisions = decisions_of(*w.indexing);
  }
  return w.sink;
}

UOp transform(Work& w, Trace*, Notes) {
  w.set_graph(transform_to_ranges(w.sink, *w.indexing));
  return w.sink;
}

UOp clean_buffers(Work& w, Trace* trace, Notes) {
  w.set_graph(graph_rewrite(w.sink, bufferize_rules(), {.trace = trace, .pass = "bufferize"}));
  return w.sink;
}

UOp decide_buffers(Work& w, Trace* trace, Notes) {
  w.set_graph(inline_buffers(w.sink, w.limits(), decisions_in(trace, "inline buffers", w.sink)));
  return w.sink;
}

UOp merge_dependent_reductions(Work& w, Trace*, Notes) {
  w.set_graph(merge_reductions(w.sink, w.limits()));
  return w.sink;
}

UOp simplify_indices(Work& w, Trace* trace, Notes) {
  w.set_graph(simplify(w.sink, trace));
  return w.sink;
}

UOp order_all_writes(Work& w, Trace*, Notes) {
  if (w.has_writes) w.set_graph(order_writes(w.sink, w.limits()));
  return w.sink;
}

UOp stage_all_hazards(Work& w, Trace*, Notes) {
  if (w.has_writes) w.set_graph(stage_hazards(w.sink));
  return w.sink;
}

// ---- split

UOp before_split(Work& w, Trace* trace, Notes) {
  w.set_graph(
      graph_rewrite(w.sink, before_split_rules(), {.trace = trace, .pass = "before split"}));
  return w.sink;
}

UOp make_memory(Work& w, Trace*, Notes) {
  w.set_graph(bufferize_to_store(w.sink));
  return w.sink;
}

UOp group_writes(Work& w, Trace* trace, Notes notes) {
  w.units = form_kernels(w.sink, w.limits(), decisions_in(trace, "form kernels", w.sink));
  if (notes != nullptr) *notes = text_of(w.units);
  return w.sink;
}

UOp split(Work& w, Trace* trace, Notes) {
  w.kernels = split_kernels(w.sink, w.units, w.device, std::move(w.asts), trace);
  return trace == nullptr ? w.kernels->sink : with_asts(*w.kernels);
}

// ---- order

UOp order_calls(Work& w, Trace*, Notes notes) {
  w.listed.ordered = order_kernels(*w.kernels);
  w.schedule = list_calls(std::move(w.listed), w.kernels->asts, w.inputs, w.options);
  if (notes != nullptr) *notes = text_of_calls(w.schedule);
  return w.kernels->sink;
}

UOp share(Work& w, Trace*, Notes notes) {
  share_kernels(w.schedule, w.kernels->asts);
  if (notes != nullptr) *notes = text_of_calls(w.schedule);
  return w.kernels->sink;
}

UOp plan(Work& w, Trace*, Notes notes) {
  plan_memory(w.schedule, w.options.dying);
  if (notes != nullptr) *notes = text_of_memory(w.schedule);
  return w.kernels->sink;
}

// ---- the list

constexpr std::optional<Stage> kTensors = Stage::kTensor, kRanges = Stage::kRangeified;
constexpr std::optional<Stage> kNone = std::nullopt;
using enum SchedulePart;

// clang-format off
constexpr SchedulePass kPasses[] = {
    {{"loops", "graphs of many small writes as loop programs", kTensors, kNone}, kRoll, loops},
    {{"roll", "chains of equal writes and operations as loops", kTensors, kTensors}, kRoll, roll},
    {{"loops of values", "loops that write nothing as loop programs", kTensors, kNone}, kRoll, loops_of_values},
    {{"early", "DETACH, CONTIGUOUS_BACKWARD, writes of nothing", kTensors, kTensors}, kRangeify, early},
    {{"store sources", "what is to exist in memory is CONTIGUOUS", kTensors, kTensors}, kRangeify, store_sources},
    {{"split reductions", "large reductions to few results in two steps", kTensors, kTensors}, kRangeify, split_large_reductions},
    {{"separate versions", "of two next versions of one memory, one in a copy", kTensors, kTensors}, kRangeify, separate},
    {{"rangeify", "phase 1: indices for every value; what may, and what must be stored", kTensors, kNone}, kRangeify, assign_ranges},
    {{"transform", "phase 2: movement ops into indices; BUFFERIZE, INDEX, REDUCE", kNone, kRanges}, kRangeify, transform},
    {{"bufferize", "phase 3: stored copies of stored values, dead axes", kRanges, kRanges}, kRangeify, clean_buffers},
    {{"inline buffers", "phase 3: store, or compute again in each user", kRanges, kRanges}, kRangeify, decide_buffers},
    {{"merge reductions", "phase 3: reductions that depend on each other over one range, in one pass", kRanges, kRanges}, kRangeify, merge_dependent_reductions},
    {{"simplify", "phase 4: indices in their simplest form", kRanges, kRanges}, kRangeify, simplify_indices},
    {{"order writes", "writes that may meet, one after the other", kRanges, kRanges}, kRangeify, order_all_writes},
    {{"stage hazards", "values of writes that read what they overwrite, stored first", kRanges, kRanges}, kRangeify, stage_all_hazards},
    {{"before split", "loops that never run", kRanges, kRanges}, kSplit, before_split},
    {{"bufferize to store", "phase 5: BUFFERIZE into memory, STORE and END", kRanges, kRanges}, kSplit, make_memory},
    {{"form kernels", "phase 5: which writes share a kernel", kRanges, kNone}, kSplit, group_writes},
    {{"split kernels", "phase 5: each group of writes a KERNEL", kNone, kNone}, kSplit, split},
    {{"order kernels", "KERNELs into calls in an order that can run", kNone, kNone}, kOrder, order_calls},
    {{"share kernels", "kernels that differ in scalars alone into one", kNone, kNone}, kOrder, share},
    {{"plan memory", "buffers into slots that they share", kNone, kNone}, kOrder, plan},
};
// clang-format on

constexpr Phase phase_of(SchedulePart part) {
  return part == kRoll ? Phase::kRoll : part == kRangeify ? Phase::kRangeify : Phase::kSplit;
}

void run_part(Work& w, SchedulePart part, Trace* trace) {
  const PhaseTimer timer(phase_of(part));
  for (const SchedulePass& pass : kPasses) {
    if (pass.part != part || (w.runs_as_loops && part != kOrder)) continue;
    const UOp shown = run_pass(pass.info, w.sink, trace, [&](UOp graph, Trace* t, Notes notes) {
      w.set_graph(graph);
      return pass.run(w, t, notes);
    });
    if (pass.info.after) w.set_graph(shown);
  }
}

}  // namespace

const std::vector<UOp>& Scheduling::nodes() {
  if (order.empty()) order = toposort(sink);
  return order;
}

void Scheduling::set_graph(UOp graph) {
  if (graph == sink) return;
  sink = graph;
  order.clear();
}

std::span<const SchedulePass> schedule_passes() { return kPasses; }

Schedule run_schedule_passes(std::vector<UOp> order, const ScheduleOptions& options) {
  Work work(std::move(order), options, options.device);
  std::string first_device = "REF";
  for (UOp n : work.order) {
    if (!n.is(Op::BUFFER)) continue;
    if (work.inputs.empty()) first_device = n.src(1).name();
    work.inputs.insert(n.number());
  }
  if (work.device.empty()) work.device = first_device;
  if (options.trace != nullptr) {
    if (auto arena = work.sink.arena().weak_from_this().lock()) {
      options.trace->owners.push_back(std::move(arena));
    }
  }
  for (const SchedulePart part : {kRoll, kRangeify, kSplit, kOrder}) {
    run_part(work, part, options.trace);
  }
  work.schedule.why_no_loops = std::move(work.why_no_loops);
  return std::move(work.schedule);
}

UOp run_rangeify_pipeline(std::vector<UOp> order, const KernelLimits& limits,
                          const std::string& device, Trace* trace) {
  const ScheduleOptions options{.limits = limits};
  Work work(std::move(order), options, device);
  run_part(work, kRangeify, trace);
  return work.sink;
}

KernelGraph run_kernel_split_pipeline(UOp sink, const KernelLimits& limits,
                                      const std::string& device, Trace* trace, KernelTable asts) {
  if (!sink.is(Op::SINK)) {
    throw SpecError("[split_kernels] the graph is " + short_form(sink, 60) +
                    "; it must be a SINK of memory");
  }
  const ScheduleOptions options{.limits = limits};
  Work work({sink}, options, device);
  work.order.clear();  // not known
  work.asts = std::move(asts);
  run_part(work, kSplit, trace);
  return std::move(*work.kernels);
}

}  // namespace weft
