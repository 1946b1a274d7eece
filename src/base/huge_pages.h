// Memory in huge pages, for what is large.
#pragma once

#include <cstddef>

namespace weft {

inline constexpr size_t kHugePage = size_t(2) << 20;

// Zeroed pages from the system, aligned to a huge page and asked to be huge before the first touch;
// null where there are none. `munmap` gives them back.
void* map_huge(size_t bytes);

}  // namespace weft
