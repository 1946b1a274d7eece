// The counters of the process.
#include "runtime/counters.h"

#include <atomic>
#include <cstdint>

namespace weft {
namespace {

std::atomic<uint64_t> kernel_counter, byte_counter, flop_counter;

}  // namespace

Counters counters() {
  return {.kernels = kernel_counter, .bytes = byte_counter, .flops = flop_counter};
}

void reset_counters() {
  kernel_counter = 0;
  byte_counter = 0;
  flop_counter = 0;
}

void count_kernel(uint64_t bytes, uint64_t flops) {
  kernel_counter += 1;
  byte_counter += bytes;
  flop_counter += flops;
}

}  // namespace weft
