// Schedules as bytes, for a store that outlives the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "ir/node.h"
#include "schedule/schedule.h"

namespace weft {

std::vector<std::byte> bytes_of_schedule(const Schedule& schedule);
// None where the bytes are no schedule: what they say is checked, and every kernel verified.
std::optional<Schedule> schedule_of_bytes(std::span<const std::byte> bytes);

// The schedule of a graph, sources first: from options.store, else made and put there. The key has
// the build of weft in it, so that another scheduler's work is not found. What is damaged is
// removed.
Schedule stored_schedule(std::vector<UOp> order, const ScheduleOptions& options);
// How many came from stores, in the process.
uint64_t loaded_schedules();

// The hash of a graph with all else that a schedule depends on.
Hash128 schedule_key(Hash128 graph, const ScheduleOptions& options);

}  // namespace weft
