// Making and freeing buffers.
#include "runtime/buffer.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "runtime/counters.h"
#include "runtime/device.h"

namespace weft {
namespace {

std::atomic<BufferWatch> buffer_watch = nullptr;

void tell_watch(const Buffer& buffer, int64_t bytes) noexcept {
  if (const BufferWatch watch = buffer_watch.load(std::memory_order_relaxed)) watch(buffer, bytes);
}

}  // namespace

void watch_buffers(BufferWatch watch) { buffer_watch = watch; }

Ref<Buffer> Buffer::make(Device& device, size_t bytes) {
  void* memory = device.allocate(bytes);
  try {
    Ref<Buffer> buffer = Ref<Buffer>::adopt(new Buffer(device, bytes, memory));
    count_live_bytes(int64_t(bytes));
    tell_watch(*buffer, int64_t(bytes));
    return buffer;
  } catch (...) {
    device.free(memory, bytes);
    throw;
  }
}

Buffer::~Buffer() {
  if (lender_) return;
  device_.free(memory_, bytes_);
  count_live_bytes(-int64_t(bytes_));
  tell_watch(*this, -int64_t(bytes_));
}

namespace {

struct PartOf : Buffer::Lender {
  explicit PartOf(Ref<Buffer> b) : whole(std::move(b)) {}
  bool sees_writes() const override { return whole->is_seen_outside(); }
  void check() const override { whole->check_lender(); }
  bool may_vanish() const override { return whole->may_vanish(); }
  Ref<Buffer> whole;
};

}  // namespace

Ref<Buffer> Buffer::make_part(Ref<Buffer> whole, size_t first, size_t bytes) {
  Device& device = whole->device();
  if (!device.has_host_memory()) {
    Ref<Buffer> part = make(device, bytes);
    if (device.copy_part(part->memory(), whole->memory(), first, bytes)) return part;
    std::vector<std::byte> content(bytes);
    whole->copy_out_part(content, first);
    part->copy_in(content);
    return part;
  }
  void* const memory = static_cast<std::byte*>(whole->memory()) + first;
  return borrow(device, memory, bytes, std::make_unique<PartOf>(std::move(whole)));
}

Ref<Buffer> Buffer::borrow(Device& device, void* memory, size_t bytes,
                           std::unique_ptr<Lender> lender) {
  Ref<Buffer> buffer = Ref<Buffer>::adopt(new Buffer(device, bytes, memory));
  buffer->lender_ = std::move(lender);
  return buffer;
}

void Buffer::copy_from(const Buffer& other) {
  other.check_lender();
  if (other.device_.has_host_memory()) {
    copy_in({static_cast<const std::byte*>(other.memory_), bytes_});
    return;
  }
  if (device_.copy_from(memory_, other.device_, other.memory_, bytes_)) return;
  if (device_.has_host_memory()) {
    other.copy_out({static_cast<std::byte*>(memory_), bytes_});
    return;
  }
  std::vector<std::byte> content(bytes_);
  other.copy_out(content);
  copy_in(content);
}

void Buffer::copy_out_part(std::span<std::byte> to, size_t first) const {
  if (to.empty()) return;
  check_lender();
  if (device_.has_host_memory()) {
    std::memcpy(to.data(), static_cast<const std::byte*>(memory_) + first, to.size());
    return;
  }
  if (device_.copy_out_part(to, memory_, first)) return;
  std::vector<std::byte> start(first + to.size());
  copy_out(start);
  std::memcpy(to.data(), start.data() + first, to.size());
}

size_t Buffer::bytes_for(const Device& device, DType dtype, int64_t count) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count, int64_t(dtype.item_bytes()), &bytes)) {
    throw DeviceError(fmt::format("[{}] there is no memory for {} elements of {}", device.name(),
                                  count, dtype.name()));
  }
  return size_t(bytes);
}

void retain(Buffer* buffer) noexcept { buffer->owners_.fetch_add(1, std::memory_order_relaxed); }

void release(Buffer* buffer) noexcept {
  if (buffer->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete buffer;
}

}  // namespace weft
