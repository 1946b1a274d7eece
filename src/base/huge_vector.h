// Vectors that can be large: from 2 MiB on their memory lies in huge pages, where the system has
// them, and what of it is never touched costs nothing.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "base/huge_pages.h"

namespace weft {

template <class T>
struct HugeAllocator {
  using value_type = T;  // NOLINT(readability-identifier-naming): std's name
  static_assert(alignof(T) <= alignof(std::max_align_t));

  HugeAllocator() = default;
  template <class U>
  explicit HugeAllocator(const HugeAllocator<U>&) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kHugePage) return static_cast<T*>(::operator new(bytes));
    void* memory = map_huge(huge_bytes(bytes));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t count) noexcept {
    const size_t bytes = count * sizeof(T);
    if (bytes < kHugePage) return ::operator delete(memory);
    unmap_huge(memory, huge_bytes(bytes));
  }
  bool operator==(const HugeAllocator&) const = default;
};

template <class T>
using HugeVector = std::vector<T, HugeAllocator<T>>;

}  // namespace weft
