// Schedules made once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ir/node.h"
#include "schedule/schedule.h"

namespace weft {

// The schedule of a graph: of an equal one, if there was one. The key is the structure of the graph
// with its BUFFERs numbered as the caller numbered them (so that the same program gives the same
// key on other memory), which of them die, the device and the limits. Thread-safe; the least
// recently used ones go when there are many.
// A graph that differs from an earlier one in its scalars alone gets a schedule that reads those
// from memory, and so does every further one: a new learning rate is a lookup. One that differs in
// sizes and offsets gets a schedule in which those are variables, until its sizes have come a few
// times and done much work, as Schedule::use counts it: then they get one of their own.
// What is made is put in options.store, and looked for there first.
std::shared_ptr<const Schedule> cached_schedule(UOp sink, const ScheduleOptions& options = {});

struct ScheduleCacheCounts {
  uint64_t hits = 0, misses = 0;
  uint64_t loaded = 0;  // schedules that were in the store and not made
  size_t schedules = 0;
};
ScheduleCacheCounts schedule_cache_counts();
// And whatever else of it lies in caches of the process (base/cache_budget.h).
void clear_schedule_cache();

}  // namespace weft
