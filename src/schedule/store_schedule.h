// Schedules as bytes, for a store that outlives the process.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "schedule/schedule.h"

namespace weft {

std::vector<std::byte> bytes_of_schedule(const Schedule& schedule);
// None where the bytes are no schedule: what they say is checked, and every kernel verified.
std::optional<Schedule> schedule_of_bytes(std::span<const std::byte> bytes);

// The same in a store, which may be null. Keys are made particular to this build of weft: another
// scheduler's work is not found. What is damaged is removed.
std::optional<Schedule> load_schedule(ScheduleStore* store, const Hash128& key);
void store_schedule(ScheduleStore* store, const Hash128& key, const Schedule& schedule);

}  // namespace weft
