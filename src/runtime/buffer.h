// One allocation of a device, shared by those that hold it, freed by the last.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ref.h"
#include "ir/dtype.h"
#include "runtime/device.h"

namespace weft {

class Buffer {
 public:
  // Throws DeviceError when there is not so much memory.
  static Ref<Buffer> make(Device& device, size_t bytes);
  static Ref<Buffer> make(Device& device, DType dtype, int64_t count) {
    return make(device, bytes_for(device, dtype, count));
  }
  // Throws DeviceError when no memory has so many bytes.
  static size_t bytes_for(const Device& device, DType dtype, int64_t count);

  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Device& device() const { return device_; }
  size_t bytes() const { return bytes_; }
  void* memory() const { return memory_; }
  uint32_t owners() const { return owners_.load(std::memory_order_acquire); }

  // Counts the contents: what was read of one generation is gone in the next.
  uint64_t generation() const { return generation_; }
  void next_generation() { generation_++; }
  // A kernel that was to write the next generation failed: there is none.
  void lose() {
    generation_++;
    is_lost_ = true;
  }
  bool is_lost() const { return is_lost_; }

  void copy_in(std::span<const std::byte> from) { device_.copy_in(memory_, from); }
  void copy_out(std::span<std::byte> to) const { device_.copy_out(to, memory_); }

 private:
  friend void retain(Buffer* buffer) noexcept;
  friend void release(Buffer* buffer) noexcept;

  Buffer(Device& device, size_t bytes, void* memory)
      : device_(device), bytes_(bytes), memory_(memory) {}
  ~Buffer() { device_.free(memory_, bytes_); }

  Device& device_;
  size_t bytes_;
  void* memory_;
  uint64_t generation_ = 0;
  bool is_lost_ = false;
  std::atomic<uint32_t> owners_ = 1;
};

void retain(Buffer* buffer) noexcept;
void release(Buffer* buffer) noexcept;

}  // namespace weft
