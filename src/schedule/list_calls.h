// Kernels in order as a Schedule: calls on buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "schedule/dependencies.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/roll/progression.h"
#include "schedule/schedule.h"

namespace weft {

// What was found out on the way to the order.
struct ListedKernels {
  OrderedKernels ordered;
  Tables tables;  // contents of BUFFERs
  std::vector<std::optional<int64_t>> firsts;
};

// The buffers and calls; memory is not planned yet. The kernels are taken out of `asts`, which
// keeps their facts. `inputs` are ids of BUFFERs that exist.
Schedule list_calls(ListedKernels listed, KernelTable& asts,
                    const std::unordered_set<int64_t>& inputs, const ScheduleOptions& options);

// A line for each call, and one for each buffer.
std::string text_of_calls(const Schedule& schedule);
std::string text_of_memory(const Schedule& schedule);

}  // namespace weft
