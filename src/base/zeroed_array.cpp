// Small arrays from calloc, large ones from mmap with huge pages asked for before the first touch.
#include "base/zeroed_array.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/huge_pages.h"

namespace weft {
namespace {

bool is_mapped(size_t size) { return size * sizeof(uint64_t) >= kHugePage; }

size_t mapped_bytes(size_t size) { return huge_bytes(size * sizeof(uint64_t)); }

uint64_t* allocate(size_t size) {
  if (!is_mapped(size)) {
    void* memory = std::calloc(std::max<size_t>(size, 1), sizeof(uint64_t));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<uint64_t*>(memory);
  }
  void* memory = map_huge(mapped_bytes(size));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<uint64_t*>(memory);
}

void release(uint64_t* data, size_t size) {
  if (data == nullptr) return;
  if (is_mapped(size)) {
    unmap_huge(data, mapped_bytes(size));
  } else {
    std::free(data);
  }
}

}  // namespace

ZeroedArray::ZeroedArray(size_t size) : data_(allocate(size)), size_(size) {}

ZeroedArray::ZeroedArray(ZeroedArray&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

ZeroedArray& ZeroedArray::operator=(ZeroedArray&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

ZeroedArray::~ZeroedArray() { release(data_, size_); }

void ZeroedArray::grow(size_t size) {
  if (size <= size_) return;
  ZeroedArray larger(size);
  if (size_ > 0) std::memcpy(larger.data_, data_, size_ * sizeof(uint64_t));
  *this = std::move(larger);
}

void ZeroedArray::clear_words() {
  if (size_ > 0) std::memset(data_, 0, size_ * sizeof(uint64_t));
}

}  // namespace weft
