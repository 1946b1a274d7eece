// What was decided for a program, kept for `weft explain`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ir/node.h"
#include "rewrite/trace.h"
#include "schedule/schedule.h"
#include "value/import.h"

namespace weft {

namespace detail {
extern std::atomic<bool> is_explaining;
}
inline bool is_explaining() { return detail::is_explaining.load(std::memory_order_relaxed); }
void set_explaining(bool is_on);  // on: forgets what was kept before

// One realise on one device: why its schedule was made, if it was, and what the passes decided.
struct ScheduleEvent {
  const Imported& imported;
  const Schedule& schedule;
  const Trace& trace;
  std::string device;
  std::string why_made;  // empty: it was known
  uint64_t nanoseconds = 0;
};
void explain_schedule(const ScheduleEvent& event);

// WEFT_DEBUG=2: what a schedule was made for, or found for, and which writes go to copies.
void show_schedule(UOp sink, const Schedule& schedule, bool is_new, uint64_t nanoseconds);

// One run of a kernel.
void explain_run(const Schedule& schedule, size_t call, uint64_t nanoseconds, uint64_t bytes,
                 uint64_t flops);

// {"schedules": [{"device", "known", "why_made", "microseconds", "kernels": [{"name", "sites",
// "graph", "buffers", "runs", "nanoseconds", "bytes", "flops"}], "passes": [...], "decisions":
// [...], "copies": [...]}]} so far.
std::string explanations();

// "train.py:12, train.py:14" of sites; at most `most` of them.
std::string text_of_sites(std::span<const uint32_t> sites, size_t most = 3);

}  // namespace weft
