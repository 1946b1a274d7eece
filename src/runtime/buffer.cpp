// Making and freeing buffers.
#include "runtime/buffer.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "runtime/device.h"

namespace weft {

Ref<Buffer> Buffer::make(Device& device, size_t bytes) {
  void* memory = device.allocate(bytes);
  try {
    return Ref<Buffer>::adopt(new Buffer(device, bytes, memory));
  } catch (...) {
    device.free(memory, bytes);
    throw;
  }
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
