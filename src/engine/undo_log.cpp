// Copies of whole buffers.
#include "engine/undo_log.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/ref.h"
#include "runtime/buffer.h"
#include "runtime/device.h"

namespace weft {
namespace {

constexpr double kShortRest = 0.05;  // seconds, which are soon over
constexpr double kMostShare = 0.01;  // of the rest, for copies

}  // namespace

void UndoLog::will_write(Buffer& memory, double rest) {
  const auto is_it = [&](const auto& copy) { return copy.first.get() == &memory; };
  if (!is_whole_ || std::ranges::any_of(copies_, is_it)) return;
  seconds_ += seconds_of_work(2 * memory.bytes(), 0);
  is_whole_ =
      rest > kShortRest && seconds_ < kMostShare * rest && memory.device().has_host_memory();
  try {
    if (!is_whole_) return copies_.clear();
    Ref<Buffer> copy = Buffer::make(memory.device(), memory.bytes());
    copy->copy_from(memory);
    copies_.emplace_back(Ref(&memory), std::move(copy));
  } catch (const DeviceError&) {  // no memory
    is_whole_ = false;
    copies_.clear();
  }
}

void UndoLog::undo() {
  for (const auto& [memory, copy] : copies_) memory->copy_from(*copy);
  copies_.clear();
}

}  // namespace weft
