// One allocation of a device, shared by those that hold it, freed by the last.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
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

  // A part of another one's memory, in which nothing is written in place; where the device's memory
  // is not that of the process, a copy of it.
  static Ref<Buffer> make_part(Ref<Buffer> whole, size_t first, size_t bytes);
  // Whoever lends memory to a Buffer: destroyed when the Buffer is.
  class Lender {
   public:
    Lender() = default;
    Lender(const Lender&) = delete;
    Lender& operator=(const Lender&) = delete;
    virtual ~Lender() = default;
    // Whoever lends it reads what is written: writes to a tensor are done there, at once.
    virtual bool sees_writes() const { return false; }
    // Throws where the memory can no longer be read, before it is.
    virtual void check() const {}
    // Whether that can come to be while somebody outside of weft reads it, who cannot check.
    virtual bool may_vanish() const { return false; }
  };
  // Memory of somebody outside of weft, on a device whose memory is that of the process.
  static Ref<Buffer> borrow(Device& device, void* memory, size_t bytes,
                            std::unique_ptr<Lender> lender);

  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Device& device() const { return device_; }
  size_t bytes() const { return bytes_; }
  void* memory() const { return memory_; }
  bool is_borrowed() const { return bool(lender_); }
  // Called before memory is read: what was lent may be gone.
  void check_lender() const {
    if (lender_) lender_->check();
  }
  bool is_seen_outside() const { return lender_ && lender_->sees_writes(); }
  bool may_vanish() const { return lender_ && lender_->may_vanish(); }
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

  // All of another one's content, of as many bytes, on any device.
  void copy_from(const Buffer& other);
  void copy_in(std::span<const std::byte> from) { device_.copy_in(memory_, from); }
  void copy_out(std::span<std::byte> to) const {
    check_lender();
    device_.copy_out(to, memory_);
  }
  // Bytes from `first` on.
  void copy_out_part(std::span<std::byte> to, size_t first) const;

 private:
  friend void retain(Buffer* buffer) noexcept;
  friend void release(Buffer* buffer) noexcept;

  Buffer(Device& device, size_t bytes, void* memory)
      : device_(device), bytes_(bytes), memory_(memory) {}
  ~Buffer();

  Device& device_;
  size_t bytes_;
  void* memory_;
  uint64_t generation_ = 0;
  bool is_lost_ = false;
  std::unique_ptr<Lender> lender_;
  std::atomic<uint32_t> owners_ = 1;
};

void retain(Buffer* buffer) noexcept;
void release(Buffer* buffer) noexcept;

// Called for every allocation of a Buffer, and when it is freed, with its bytes less than 0.
using BufferWatch = void (*)(const Buffer& buffer, int64_t bytes) noexcept;
void watch_buffers(BufferWatch watch);  // null: nobody does

}  // namespace weft
