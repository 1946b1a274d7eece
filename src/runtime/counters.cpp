// The counters of the process.
#include "runtime/counters.h"

#include <atomic>
#include <cstdint>

namespace weft {
namespace {

std::atomic<uint64_t> kernel_counter, byte_counter, flop_counter, schedule_counter;
std::atomic<int64_t> live_values, live_bytes;

}  // namespace

Counters counters() {
  return {.kernels = kernel_counter,
          .bytes = byte_counter,
          .flops = flop_counter,
          .schedules = schedule_counter};
}

void reset_counters() {
  kernel_counter = 0;
  byte_counter = 0;
  flop_counter = 0;
  schedule_counter = 0;
}

void count_schedule() { schedule_counter += 1; }

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
