// One huge page more than needed is mapped, so that an aligned piece lies inside; the ends go back.
#include "base/huge_pages.h"

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace weft {

void* map_huge(size_t bytes) {
  void* memory =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(memory);
  const size_t before = (kHugePage - uintptr_t(start) % kHugePage) % kHugePage;
  if (before > 0) munmap(start, before);
  munmap(start + before + bytes, kHugePage - before);
  madvise(start + before, bytes, MADV_HUGEPAGE);
  return start + before;
}

void unmap_huge(void* memory, size_t bytes) noexcept { munmap(memory, bytes); }

}  // namespace weft
