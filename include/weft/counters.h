// What has been run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weft {

struct Counters {
  uint64_t kernels = 0;  // run
  uint64_t bytes = 0;    // of their arguments
  // Elementwise operations on data: an addition is 1, a division or square root 4, an exponential,
  // logarithm, sine or integer division 8; a reduction is one operation per element.
  uint64_t flops = 0;
  uint64_t schedules = 0;  // made, or read from disk, where no known one served
  uint64_t lowered = 0;    // kernels that were turned into a program's text
  uint64_t compiled = 0;   // texts that a compiler ran for: no code of them was known
};

// Since the start of the process, or since the last reset.
Counters counters();
void reset_counters();

// Bytes of the process's memory in its caches, by name: schedules, families of them (which serve
// other sizes and scalars), and compiled kernels of the CPU. Together they stay within a bound:
// what was used least recently goes first, and what something still uses stays.
std::vector<std::pair<std::string, uint64_t>> cached_bytes();
// Sets the bound; the one before. Throws Error below 0.
int64_t set_most_cached_bytes(int64_t bytes);

// Where the CPU time of realising goes, as (name of the phase, seconds), if time_phases(true) was
// called: that of threads that compile, too, and not that of threads that help to run a kernel.
// reset_counters() resets it.
void time_phases(bool are_timed);
std::vector<std::pair<std::string, double>> phase_seconds();

// What lives now: results of operations, computed or not, and the bytes that tensors and what they
// are computed from hold in memory.
struct Live {
  int64_t values = 0;
  int64_t bytes = 0;
};
Live live();

}  // namespace weft
