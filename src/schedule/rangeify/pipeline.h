// Rangeify: a tensor graph -> a graph of kernels.
#pragma once

#include <string>
#include <vector>

#include "ir/node.h"
#include "rewrite/trace.h"
#include "schedule/kernel_table.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/schedule.h"

namespace weft {

// Phases 1 to 4: the graph on ranges, with what is stored decided. `order` has the nodes of the
// graph, sources first, the SINK last.
UOp run_rangeify_pipeline(std::vector<UOp> order, const KernelLimits& limits,
                          const std::string& device, Trace* trace);

// Phase 5: the graph of kernels, which are added to `asts`.
KernelGraph run_kernel_split_pipeline(UOp sink, const KernelLimits& limits,
                                      const std::string& device, Trace* trace,
                                      KernelTable asts = {});

}  // namespace weft
