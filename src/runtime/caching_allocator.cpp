// Size classes, a list of free blocks by age, and the source beneath.
#include "runtime/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/huge_pages.h"

namespace weft {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;
constexpr size_t kMapped = size_t(1) << 20;  // from here on the system maps pages
constexpr size_t kHuge = size_t(4) << 20;    // from here on in huge pages

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Eight sizes per power of two: at most an eighth is wasted, and sizes that are nearly equal share
// blocks.
size_t class_of(size_t bytes) {
  if (bytes <= kLine) return kLine;
  const size_t step = std::max(std::bit_floor(bytes - 1) / 8, kLine);
  const size_t rounded = round_up(bytes, step);
  return rounded < kMapped ? rounded : round_up(rounded, kPage);
}

class HostMemory : public MemorySource {
 public:
  void* allocate(size_t bytes) override {
    if (bytes >= kHuge) return map_huge(bytes);
    if (bytes >= kMapped) {
      void* memory =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      return memory == MAP_FAILED ? nullptr : memory;
    }
    return std::aligned_alloc(kLine, bytes);
  }

  void free(void* memory, size_t bytes) noexcept override {
    if (bytes >= kMapped) {
      munmap(memory, bytes);
    } else {
      std::free(memory);
    }
  }
};

}  // namespace

MemorySource& host_memory() {
  static auto& instance = *new HostMemory;
  return instance;
}

void* CachingAllocator::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool has_class = bytes <= size_t(std::numeric_limits<int64_t>::max() / 2);
  const size_t size = has_class ? class_of(bytes) : 0;
  void* memory = nullptr;
  if (has_class && int64_t(size) <= most_bytes_ - used_bytes_) {
    memory = take_kept(size);
    while (memory == nullptr) {
      // Kept memory counts: together they are never more than the bound.
      while (!kept_.empty() && used_bytes_ + kept_bytes_ + int64_t(size) > most_bytes_) {
        release_oldest();
      }
      memory = source_.allocate(size);
      if (memory != nullptr || kept_.empty()) break;
      release_oldest();
    }
  }
  if (memory == nullptr) {
    throw DeviceError(fmt::format("[{}] there is no memory for {} bytes: {} of {} are in use{}",
                                  name_, bytes, used_bytes_, most_bytes_, source_.state()));
  }
  try {  // what free() will need
    while (spare_.size() <= used_) spare_.emplace_back();
    SizeClass& same = classes_[size];
    const size_t blocks = same.kept.size() + same.used + 1;
    if (same.kept.capacity() < blocks) same.kept.reserve(2 * blocks);
    same.used++;
  } catch (const std::bad_alloc&) {
    source_.free(memory, size);
    throw DeviceError(fmt::format("[{}] there is no memory for {} bytes", name_, bytes));
  }
  used_++;
  used_bytes_ += int64_t(size);
  return memory;
}

void* CachingAllocator::take_kept(size_t bytes) {
  const auto at = classes_.find(bytes);
  if (at == classes_.end() || at->second.kept.empty()) return nullptr;
  const Blocks::iterator block = at->second.kept.back();
  at->second.kept.pop_back();
  void* memory = block->memory;
  spare_.splice(spare_.begin(), kept_, block);
  kept_bytes_ -= int64_t(bytes);
  return memory;
}

void CachingAllocator::free(void* memory, size_t bytes) noexcept {
  if (memory == nullptr) return;
  const size_t size = class_of(bytes);
  const std::lock_guard lock(mutex_);
  used_bytes_ -= int64_t(size);
  used_--;
  SizeClass& same = classes_.find(size)->second;
  same.used--;
  if (int64_t(size) > most_kept_bytes_) {
    source_.free(memory, size);
    return;
  }
  kept_.splice(kept_.begin(), spare_, spare_.begin());
  kept_.front() = {memory, size};
  same.kept.push_back(kept_.begin());
  kept_bytes_ += int64_t(size);
  while (kept_bytes_ > most_kept_bytes_) release_oldest();
}

void CachingAllocator::release_oldest() noexcept {
  const Blocks::iterator oldest = std::prev(kept_.end());
  std::vector<Blocks::iterator>& same = classes_.find(oldest->bytes)->second.kept;
  same.erase(std::ranges::find(same, oldest));
  source_.free(oldest->memory, oldest->bytes);
  kept_bytes_ -= int64_t(oldest->bytes);
  spare_.splice(spare_.begin(), kept_, oldest);
}

void CachingAllocator::release_kept() noexcept {
  const std::lock_guard lock(mutex_);
  while (!kept_.empty()) release_oldest();
}

int64_t CachingAllocator::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

int64_t CachingAllocator::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

}  // namespace weft
