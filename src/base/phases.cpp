// A sum of nanoseconds for each phase.
#include "base/phases.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>

namespace weft {

namespace detail {
std::atomic<bool> phases_are_timed = false;
}

namespace {

std::array<std::atomic<uint64_t>, kPhaseCount> totals;
thread_local PhaseTimer* running = nullptr;  // of this thread: phases nest

// Of this thread: on a busy machine the time that others take is not the phase's.
uint64_t cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

}  // namespace

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, kPhaseCount> k_names = {
      "import", "lookup", "roll", "rangeify", "split", "lower", "compile", "bind", "run"};
  return k_names[size_t(phase)];
}

void time_phases(bool are_timed) { detail::phases_are_timed = are_timed; }

std::array<uint64_t, kPhaseCount> phase_nanoseconds() {
  std::array<uint64_t, kPhaseCount> out{};
  for (size_t i = 0; i < kPhaseCount; i++) out[i] = totals[i];
  return out;
}

void reset_phases() {
  for (std::atomic<uint64_t>& total : totals) total = 0;
}

void PhaseTimer::begin(Phase phase) {
  phase_ = phase;
  is_running_ = true;
  outer_ = running;
  running = this;
  begin_ = cpu_ns();
}

void PhaseTimer::end() {
  const uint64_t all = cpu_ns() - begin_;
  totals[size_t(phase_)] += all - inside_;
  running = outer_;
  if (outer_ != nullptr) outer_->inside_ += all;
}

}  // namespace weft
