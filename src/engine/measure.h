// What a graph would cost: its schedule on memory of its own, timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/node.h"
#include "runtime/device.h"

namespace weft {

struct Measured {
  struct Kernel {
    std::string name;
    uint64_t nanoseconds;
  };
  std::vector<Kernel> kernels;   // in their order; of each the least of all repeats
  uint64_t nanoseconds = 0;      // of all of them one after the other, the least of all repeats
  uint64_t compile_nanoseconds;  // to schedule and compile it
};

// Schedules, compiles and runs a tensor graph whose BUFFERs are numbered from 0, with the passes of
// users that this thread has. The memory is new and holds zeros. Takes the lock of realise.
Measured measure_graph(UOp sink, Device& device, size_t repeats);

}  // namespace weft
