// The watch of each thread.
#include "value/storage_watch.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/error.h"

namespace weft {
namespace {

std::atomic<uint32_t> watched_threads = 0;  // so that others need not look at their own variable
std::atomic<uint32_t> last_number = 0;
thread_local StorageWatch* the_watch = nullptr;

}  // namespace

StorageWatch::StorageWatch() : number_(++last_number) {}
StorageWatch::~StorageWatch() = default;

StorageWatch::Scope::Scope(StorageWatch& watch) {
  the_watch = &watch;
  watched_threads++;
}
StorageWatch::Scope::~Scope() {
  the_watch = nullptr;
  watched_threads--;
}

StorageWatch::Pause::Pause() : paused_(std::exchange(the_watch, nullptr)) {}
StorageWatch::Pause::~Pause() { the_watch = paused_; }

StorageWatch* storage_watch() {
  return watched_threads.load(std::memory_order_relaxed) == 0 ? nullptr : the_watch;
}

void refuse_values_while_captured() {
  if (storage_watch() == nullptr) return;
  throw JitError(
      "[jit] the function asks for values while it is captured (item, tolist, numpy, "
      "print, bool or a condition on a tensor): replays could not do the same with theirs; return "
      "the tensor and look at it outside, or choose with where()");
}

}  // namespace weft
