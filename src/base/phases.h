// Where the CPU time of a realise goes, phase by phase.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft {

// What a realise does, in order. Time in one phase counts in no other.
enum class Phase : uint8_t {
  kImport,    // Values to a tensor graph
  kLookup,    // keys of graphs, and the schedules found for them
  kRoll,      // chains to loops
  kRangeify,  // phases 1 to 4 of the scheduler
  kSplit,     // phase 5, order, shared kernels, memory
  kLower,     // kernels to programs and their text
  kCompile,   // text to code, by a compiler or from the cache on disk; threads add up
  kBind,      // programs found, memory allocated
  kRun,       // kernels, until they are started
};
constexpr size_t kPhaseCount = size_t(Phase::kRun) + 1;
std::string_view name_of(Phase phase);

// Phases are timed only where somebody asked for it: a warm realise takes a few microseconds.
void time_phases(bool are_timed);
// CPU time of threads, since the start or the last reset.
std::array<uint64_t, kPhaseCount> phase_nanoseconds();
void reset_phases();

namespace detail {
extern std::atomic<bool> phases_are_timed;
}

// The time from here to the end of the block; what phases inside it take is theirs.
class PhaseTimer {
 public:
  explicit PhaseTimer(Phase phase) {
    if (detail::phases_are_timed.load(std::memory_order_relaxed)) begin(phase);
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;
  ~PhaseTimer() {
    if (is_running_) end();
  }

 private:
  void begin(Phase phase);
  void end();

  Phase phase_{};
  bool is_running_ = false;
  uint64_t begin_ = 0;
  uint64_t inside_ = 0;  // nanoseconds of phases within this one
  PhaseTimer* outer_ = nullptr;
};

}  // namespace weft
