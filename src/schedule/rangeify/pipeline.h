// Rangeify: a tensor graph -> a graph of kernels.
#pragma once

#include <cstdint>
#include <string>

#include "ir/node.h"
#include "rewrite/trace.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/schedule.h"

namespace weft {

// Whether a graph has STOREs: passes that order them are for those that have.
enum class Writes : uint8_t { kNone, kSome };

// Phases 1 to 4: the graph on ranges, with what is stored decided.
UOp run_rangeify_pipeline(UOp sink, const KernelLimits& limits, const std::string& device,
                          Writes writes, Trace* trace);

// Phase 5: the graph of kernels.
KernelGraph run_kernel_split_pipeline(UOp sink, const KernelLimits& limits,
                                      const std::string& device, Trace* trace);

}  // namespace weft
