// Memory in huge pages, for what is large.
#pragma once

#include <cstddef>

namespace weft {

inline constexpr size_t kHugePage = size_t(2) << 20;

// Zeroed pages from the system, aligned to a huge page and asked to be huge before the first touch;
// null where there are none. `unmap_huge` gives them back.
void* map_huge(size_t bytes);
void unmap_huge(void* memory, size_t bytes) noexcept;

// The whole huge pages that so many bytes take.
constexpr size_t huge_bytes(size_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

}  // namespace weft
