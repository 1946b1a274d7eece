// What happened to Storages, while somebody wants to know: for pictures of their versions.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "weft/view.h"

namespace weft {

class Storage;

struct StorageEvent {
  // kMade: its first version; kViewed: a further handle; kRead: of its version then; kWritten: the
  // next version, through a view; kReplaced: the next version, which has nothing of the one before.
  enum class Kind : uint8_t { kMade, kViewed, kRead, kWritten, kReplaced, kGone };
  Kind kind;
  uint32_t storage;  // by number, from 0
  uint32_t version;  // after the event
  uint32_t site;     // the line of the program; 0: none
  uint64_t at;       // now_ns()
  View view;         // without a shape: all of it
};

constexpr size_t kMostStorageEvents = 100'000;  // those behind are not kept

namespace detail {
extern std::atomic<bool> is_history_kept;
void note_event(StorageEvent::Kind kind, const Storage& storage, const View* view);
}  // namespace detail

// On: forgets what was kept before.
void keep_history(bool is_on);
std::vector<StorageEvent> history();

// Without the lock of the graph: finding the line may run code of Python.
inline void note_event(StorageEvent::Kind kind, const Storage& storage,
                       const View* view = nullptr) {
  if (detail::is_history_kept.load(std::memory_order_relaxed)) [[unlikely]] {
    detail::note_event(kind, storage, view);
  }
}

}  // namespace weft
