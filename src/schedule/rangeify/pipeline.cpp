// The list of the scheduler's passes, in order.
#include "schedule/rangeify/pipeline.h"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/shape.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/rule_set.h"
#include "rewrite/trace.h"
#include "schedule/kernel_table.h"
#include "schedule/machine.h"
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
#include "schedule/schedule.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

struct Contents {
  bool has_writes = false;
  bool has_early_work = false;
};

Contents contents_of(std::span<const UOp> order) {
  Contents c;
  for (UOp n : order) {
    c.has_writes = c.has_writes || n.is(Op::STORE);
    c.has_early_work = c.has_early_work || early_rules().has_rules_for(n.op());
    shape_of(n);  // asked for in this order, none of them takes a walk
  }
  return c;
}

// Sources of the SINK that are no memory as it lies are stored.
UOp store_sources(UOp sink) {
  constexpr OpSet k_memory = {Op::BUFFER, Op::AFTER, Op::CONTIGUOUS, Op::COPY};
  std::vector<UOp> srcs;
  for (UOp s : sink.srcs()) {
    UOp base = s;
    while (base.is(Op::RESHAPE)) base = base.src(0);
    srcs.push_back(k_memory.has(base.op()) ? s : contiguous(s));
  }
  return sink.arena().with_srcs(sink, srcs);
}

}  // namespace

UOp run_rangeify_pipeline(std::vector<UOp> order, const KernelLimits& limits,
                          const std::string& device, Trace* trace) {
  UOp sink = order.back();
  const Contents contents = contents_of(order);
  if (contents.has_early_work || trace != nullptr) {
    sink = graph_rewrite(sink, early_rules(), {.trace = trace, .pass = "early"});
  }
  sink = store_sources(sink);
  if (limits.pieces > 1) {
    const Machine& m = limits.machine;
    sink = split_reductions(sink, limits.pieces, m.threads > 1 ? size_t(m.units * m.threads) : 0);
  }
  if (contents.has_writes) sink = separate_versions(sink, limits.writes);
  IndexingContext context(sink.arena(), limits, device);
  if (sink == order.back()) context.order = std::move(order);
  run_rangeify(sink, context);
  sink = transform_to_ranges(sink, context);
  sink = graph_rewrite(sink, bufferize_rules(), {.trace = trace, .pass = "bufferize"});
  sink = inline_buffers(sink, limits);
  sink = merge_reductions(sink, limits);
  sink = simplify(sink, trace);
  if (!contents.has_writes) return sink;
  sink = order_writes(sink, limits);
  return stage_hazards(sink);
}

KernelGraph run_kernel_split_pipeline(UOp sink, const KernelLimits& limits,
                                      const std::string& device, Trace* trace, KernelTable asts) {
  if (!sink.is(Op::SINK)) {
    throw SpecError("[split_kernels] the graph is " + short_form(sink, 60) +
                    "; it must be a SINK of memory");
  }
  sink = graph_rewrite(sink, before_split_rules(), {.trace = trace, .pass = "before split"});
  sink = bufferize_to_store(sink);
  const std::vector<KernelUnit> kernels = form_kernels(sink, limits);
  return split_kernels(sink, kernels, device, std::move(asts));
}

}  // namespace weft
