// Making and freeing buffers.
#include "runtime/buffer.h"

#include <atomic>
#include <cstddef>

#include "base/ref.h"
#include "runtime/device.h"

namespace weft {

Ref<Buffer> Buffer::make(Device& device, size_t bytes) {
  return Ref<Buffer>::adopt(new Buffer(device, bytes, device.allocate(bytes)));
}

void retain(Buffer* buffer) noexcept { buffer->owners_.fetch_add(1, std::memory_order_relaxed); }

void release(Buffer* buffer) noexcept {
  if (buffer->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete buffer;
}

}  // namespace weft
