// The counters of the process.
#include "runtime/counters.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/cache_budget.h"
#include "base/config.h"
#include "base/error.h"
#include "base/phases.h"

namespace weft {
namespace {

std::atomic<uint64_t> kernel_counter, byte_counter, flop_counter, schedule_counter;
std::atomic<uint64_t> lowered_counter, compiled_counter;
std::atomic<int64_t> live_values, live_bytes;

}  // namespace

Counters counters() {
  return {.kernels = kernel_counter,
          .bytes = byte_counter,
          .flops = flop_counter,
          .schedules = schedule_counter,
          .lowered = lowered_counter,
          .compiled = compiled_counter};
}

void reset_counters() {
  kernel_counter = 0;
  byte_counter = 0;
  flop_counter = 0;
  schedule_counter = 0;
  lowered_counter = 0;
  compiled_counter = 0;
  reset_phases();
}

std::vector<std::pair<std::string, uint64_t>> cached_bytes() {
  std::vector<std::pair<std::string, uint64_t>> bytes;
  for (const auto& [name, count] : bytes_of_caches()) bytes.emplace_back(name, count);
  return bytes;
}

int64_t set_most_cached_bytes(int64_t bytes) {
  if (bytes < 0) {
    throw Error(
        fmt::format("[set_most_cached_bytes] the bound is {} bytes; it must be at least 0", bytes));
  }
  const int64_t before = std::exchange(config().most_cached_bytes, bytes);
  keep_within_budget();
  return before;
}

std::vector<std::pair<std::string, double>> phase_seconds() {
  std::vector<std::pair<std::string, double>> seconds;
  const auto nanoseconds = phase_nanoseconds();
  for (size_t i = 0; i < kPhaseCount; i++) {
    seconds.emplace_back(name_of(Phase(i)), double(nanoseconds[i]) / 1e9);
  }
  return seconds;
}

void count_schedule() { schedule_counter += 1; }
void count_lowered() { lowered_counter += 1; }
void count_compiled() { compiled_counter += 1; }

void count_kernel(uint64_t bytes, uint64_t flops) {
  kernel_counter += 1;
  byte_counter += bytes;
  flop_counter += flops;
}

Live live() { return {.values = live_values, .bytes = live_bytes}; }

void count_live_value(int64_t sign) noexcept {
  live_values.fetch_add(sign, std::memory_order_relaxed);
}

void count_live_bytes(int64_t bytes) noexcept {
  live_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace weft
