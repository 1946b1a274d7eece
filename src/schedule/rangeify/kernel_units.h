// Which writes share a kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/node.h"
#include "rewrite/trace.h"
#include "schedule/rangeify/stored_values.h"
#include "schedule/schedule.h"

namespace weft {

// The writes of one kernel, in the order in which they run where that matters.
using KernelUnit = std::vector<StoredValue>;

// All writes of a graph without BUFFERIZE, as kernels, in an order that can run (but for reads of
// memory that a write in place has changed: see dependencies.h). One kernel has
//   the writes that make one version of a memory;
//   the making of a memory and the writes to it that follow, if nobody else reads it in between;
//   values that use the same reduction in the same loops;
//   values of the same loops of which none waits for another, as long as the kernel keeps to the
//   limits: reductions only where they read the same memory.
// `decisions` gets, for pairs of kernels, why they are not one.
std::vector<KernelUnit> form_kernels(UOp sink, const KernelLimits& limits,
                                     std::vector<Decision>* decisions = nullptr);

// A line for each kernel.
std::string text_of(const std::vector<KernelUnit>& units);

}  // namespace weft
