// What was decided for a program, kept for `weft explain`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ref.h"
#include "ir/node.h"
#include "rewrite/trace.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
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
  uint64_t begin = 0, nanoseconds = 0;
};
void explain_schedule(const ScheduleEvent& event);

// WEFT_DEBUG=2: what a schedule was made for, or found for, and which writes go to copies.
void show_schedule(UOp sink, const Schedule& schedule, bool is_new, uint64_t nanoseconds);

class Program;
struct PreparedSchedule;
struct Rule;

// The kernels of a schedule were compiled, or found, from `begin` on until now.
void explain_programs(const Schedule& schedule, const PreparedSchedule& prepared, uint64_t begin);

// The memory of each slot of a schedule that is about to run.
void explain_slots(const Schedule& schedule, std::span<const Ref<Buffer>> slots);

// One run of a kernel, and the least time that the device could take for it.
struct RunEvent {
  uint64_t begin, nanoseconds, bytes, flops;
  double least_nanoseconds;
};
void explain_run(const Schedule& schedule, size_t call, const RunEvent& event);
// The same outside of schedules: of a program that is called again by a captured function, or of a
// kernel of a user.
void explain_run(const Program& program, std::string_view name, std::string_view operations,
                 const RunEvent& event);

// What is known of a rule: "proved by Z3", "property-tested", "tested", or "yours".
std::string_view status_of_rule(const Rule& rule);

// Nanoseconds that work takes at least where all of a machine does it.
double least_nanoseconds(const Machine& machine, uint64_t bytes, uint64_t flops);

// All of it so far, as JSON; times are nanoseconds from the moment when it was switched on:
//   {"nanoseconds", "sites": [[file, line], ...],
//    "schedules": [{"device", "known", "why_made", "why_no_loops", "begin", "microseconds",
//                   "graph", "kernels": [{"name", "kernel", "sites", "operations", "graph",
//                   "buffers", "written", "waits_for", "runs", "nanoseconds", "bytes", "flops",
//                   "least_nanoseconds"}], "buffers", "trace" (rewrite/trace_graph.h), "decisions",
//                   "copies"}],
//    "compilations": [[schedule, begin, nanoseconds], ...],
//    "runs": [[schedule, call, begin, nanoseconds], ...],
//    "memory": [[time, number, bytes (freed: less than 0), [sites], what], ...],
//    "storages": [[kind, storage, version, site, time, dtype, shape, strides, offset], ...]}
std::string explanations();

// "train.py:12, train.py:14" of sites; at most `most` of them.
std::string text_of_sites(std::span<const uint32_t> sites, size_t most = 3);

}  // namespace weft
