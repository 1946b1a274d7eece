// Small arrays from calloc, large ones from mmap with huge pages asked for before the first touch.
#include "base/zeroed_array.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace weft {
namespace {

constexpr size_t kHugePage = size_t(2) << 20;

bool is_mapped(size_t size) { return size * sizeof(uint64_t) >= kHugePage; }

size_t mapped_bytes(size_t size) {
  return (size * sizeof(uint64_t) + kHugePage - 1) / kHugePage * kHugePage;
}

uint64_t* allocate(size_t size) {
  if (!is_mapped(size)) {
    void* memory = std::calloc(std::max<size_t>(size, 1), sizeof(uint64_t));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<uint64_t*>(memory);
  }
  // One huge page more than needed, so that an aligned piece lies inside; the ends go back.
  const size_t bytes = mapped_bytes(size);
  void* memory =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* start = static_cast<std::byte*>(memory);
  const size_t before = (kHugePage - uintptr_t(start) % kHugePage) % kHugePage;
  if (before > 0) munmap(start, before);
  munmap(start + before + bytes, kHugePage - before);
  madvise(start + before, bytes, MADV_HUGEPAGE);
  return reinterpret_cast<uint64_t*>(start + before);
}

void release(uint64_t* data, size_t size) {
  if (data == nullptr) return;
  if (is_mapped(size)) {
    munmap(data, mapped_bytes(size));
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
