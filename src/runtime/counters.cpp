// The counters of the process.
#include "runtime/counters.h"

#include <atomic>
#include <cstdint>

namespace weft {
namespace {

std::atomic<uint64_t> kernel_counter, byte_counter;

}  // namespace

Counters counters() { return {.kernels = kernel_counter, .bytes = byte_counter}; }

void reset_counters() {
  kernel_counter = 0;
  byte_counter = 0;
}

void count_kernels(uint64_t kernels, uint64_t bytes) {
  kernel_counter += kernels;
  byte_counter += bytes;
}

}  // namespace weft
