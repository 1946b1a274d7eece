// When which element of a memory is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/roll/region.h"

namespace weft {

// Writes are numbered in the order in which they happen.
class WriteTimes {
 public:
  static constexpr uint32_t kNever = UINT32_MAX;
  static constexpr int64_t kMostElements = int64_t(1) << 25;  // of a memory, and of all its writes

  struct Write {
    uint32_t time;
    std::optional<Region> region;  // empty: anywhere
  };

  // Of a memory of so many elements, its writes in order; empty where that is too much to note.
  static std::optional<WriteTimes> of(int64_t elements, const std::vector<Write>& writes);

  // The first write from `time` on that touches the region.
  uint32_t first(const Region& region, uint32_t time) const;

 private:
  std::vector<uint32_t> starts_;    // of each element, in times_
  std::vector<uint32_t> times_;     // of each element in turn, in order
  std::vector<uint32_t> anywhere_;  // of writes whose place data decides
  std::vector<uint32_t> all_;
};

}  // namespace weft
