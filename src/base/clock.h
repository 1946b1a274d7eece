// Time for statistics and traces.
#pragma once

#include <chrono>
#include <cstdint>

namespace weft {

inline uint64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace weft
