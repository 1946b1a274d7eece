// Size classes, each with what is kept of it.
#include "runtime/opencl/opencl_memory.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/opencl/opencl_functions.h"
#include "runtime/opencl/opencl_library.h"

namespace weft::cl {
namespace {

constexpr size_t kSmallest = 256;
constexpr uint64_t kKeptPart = 4;  // a quarter of the device's memory

}  // namespace

// Eight classes between two powers of two: at most an eighth more than asked for.
size_t MemoryPool::size_class(size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  const size_t step = std::max(std::bit_floor(bytes) / 8, kSmallest);
  return (bytes + step - 1) / step * step;
}

Memory MemoryPool::try_allocate(size_t bytes, int32_t& code) {
  if (used_bytes_ + kept_bytes_ + bytes > facts_.memory) {
    code = kMemoryAllocationFailure;
    return nullptr;
  }
  Memory memory = call_.clCreateBuffer(context_, kReadWrite, bytes, nullptr, &code);
  return code == kSuccess ? memory : nullptr;
}

Memory MemoryPool::allocate(size_t bytes) {
  if (bytes > facts_.max_allocation) {
    throw DeviceError(
        fmt::format("[{}] there is no memory for {} bytes: one allocation has at most {}", name_,
                    bytes, facts_.max_allocation));
  }
  const size_t wanted = std::min<size_t>(size_class(bytes), facts_.max_allocation);
  std::unique_lock lock(mutex_);
  std::vector<Memory>& kept = kept_[wanted];
  if (!kept.empty()) {
    Memory memory = kept.back();
    kept.pop_back();
    kept_bytes_ -= wanted;
    used_bytes_ += wanted;
    return memory;
  }
  int32_t code = kSuccess;
  Memory memory = try_allocate(wanted, code);
  if (memory == nullptr) {
    lock.unlock();
    release_kept();
    lock.lock();
    memory = try_allocate(wanted, code);
  }
  if (memory == nullptr) {
    lock.unlock();
    throw_out_of_memory(bytes, error_text(code));
  }
  used_bytes_ += wanted;
  return memory;
}

void MemoryPool::free(Memory memory, size_t bytes) noexcept {
  const size_t had = std::min<size_t>(size_class(bytes), facts_.max_allocation);
  {
    const std::lock_guard lock(mutex_);
    used_bytes_ -= had;
    if (kept_bytes_ + had <= facts_.memory / kKeptPart) {
      try {
        kept_[had].push_back(memory);
        kept_bytes_ += had;
        return;
      } catch (...) {  // no memory for the list: nothing is kept
      }
    }
  }
  call_.clReleaseMemObject(memory);
}

void MemoryPool::release_kept() noexcept {
  const std::lock_guard lock(mutex_);
  if (kept_bytes_ == 0) return;
  call_.clFinish(queue_);  // memory in use by commands goes back only when they have run
  for (auto& [bytes, list] : kept_) {
    for (Memory memory : list) call_.clReleaseMemObject(memory);
    list.clear();
  }
  kept_bytes_ = 0;
}

void MemoryPool::throw_out_of_memory(size_t bytes, const std::string& why) const {
  const std::lock_guard lock(mutex_);
  throw DeviceError(
      fmt::format("[{}] there is no memory for {} bytes: {} of {} bytes are in use, one allocation "
                  "has at most {}: {}",
                  name_, bytes, used_bytes_, facts_.memory, facts_.max_allocation, why));
}

}  // namespace weft::cl
