// A kernel that is to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace weft {

struct ScheduledKernel {
  std::string name;      // what it does, for people: "r_16_4" reduces 4 elements to each of 16
  std::string graph;     // its nodes, one per line, which ir/parse.h reads back
  size_t buffers = 0;    // its arguments
  uint64_t bytes = 0;    // of its arguments
  uint64_t flops = 0;    // as counters.h counts them
  std::string source{};  // as compiled; none where there is no text
};

}  // namespace weft
