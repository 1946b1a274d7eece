// The list of the scheduler's passes, in order.
#include "schedule/rangeify/pipeline.h"

#include <string>
#include <vector>

#include "ir/node.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/trace.h"
#include "schedule/rangeify/bufferize_to_store.h"
#include "schedule/rangeify/fit_buffers.h"
#include "schedule/rangeify/indexing.h"
#include "schedule/rangeify/inline_buffers.h"
#include "schedule/rangeify/kernel_units.h"
#include "schedule/rangeify/order_writes.h"
#include "schedule/rangeify/patterns.h"
#include "schedule/rangeify/separate_versions.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/rangeify/split_patterns.h"
#include "schedule/rangeify/stage_hazards.h"
#include "schedule/rangeify/transform.h"
#include "schedule/schedule.h"
#include "symbolic/simplify.h"

namespace weft {

UOp run_rangeify_pipeline(UOp sink, const KernelLimits& limits, const std::string& device,
                          Writes writes, Trace* trace) {
  const bool has_writes = writes == Writes::kSome;
  sink = graph_rewrite(sink, early_rules(), {.trace = trace, .pass = "early"});
  if (has_writes) sink = separate_versions(sink, limits.writes);
  IndexingContext context(sink.arena(), limits, device);
  run_rangeify(sink, context);
  sink = transform_to_ranges(sink, context);
  sink = graph_rewrite(sink, bufferize_rules(), {.trace = trace, .pass = "bufferize"});
  sink = inline_buffers(sink, limits);
  sink = fit_buffers(sink, limits.buffers - 1);
  sink = simplify(sink, trace);
  if (!has_writes) return sink;
  sink = order_writes(sink, limits);
  return stage_hazards(sink);
}

KernelGraph run_kernel_split_pipeline(UOp sink, const KernelLimits& limits,
                                      const std::string& device, Trace* trace) {
  sink = graph_rewrite(sink, before_split_rules(), {.trace = trace, .pass = "before split"});
  sink = bufferize_to_store(sink);
  const std::vector<KernelUnit> kernels = form_kernels(sink, limits);
  return split_kernels(sink, kernels, device);
}

}  // namespace weft
