// Events in a list, and numbers for the Storages in it.
#include "value/history.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "value/sites.h"
#include "value/storage.h"
#include "weft/view.h"

namespace weft {
namespace {

struct Known {
  uint32_t number = 0, version = 0;
};

struct History {
  std::mutex mutex;
  std::vector<StorageEvent> events;
  std::unordered_map<const Storage*, Known> storages;
  uint32_t count = 0;
};
History& kept() {
  static auto& instance = *new History;  // outlives every Storage
  return instance;
}

}  // namespace

namespace detail {

std::atomic<bool> is_history_kept = false;

void note_event(StorageEvent::Kind kind, const Storage& storage, const View* view) {
  using Kind = StorageEvent::Kind;
  const uint32_t site = kind == Kind::kGone ? 0 : site_of_call();
  History& all = kept();
  const std::lock_guard lock(all.mutex);
  const auto [at, is_new] = all.storages.try_emplace(&storage, Known{all.count, 0});
  if (is_new) all.count++;
  Known& known = at->second;
  if (kind == Kind::kWritten || kind == Kind::kReplaced) known.version++;
  if (all.events.size() < kMostStorageEvents) {
    View seen = view != nullptr ? *view : View{storage.dtype(), {}, {}, 0};
    all.events.push_back({kind, known.number, known.version, site, now_ns(), std::move(seen)});
  }
  if (kind == Kind::kGone) all.storages.erase(at);
}

}  // namespace detail

void keep_history(bool is_on) {
  History& all = kept();
  const std::lock_guard lock(all.mutex);
  if (is_on) {
    all.events.clear();
    all.storages.clear();
    all.count = 0;
  }
  detail::is_history_kept = is_on;
}

std::vector<StorageEvent> history() {
  History& all = kept();
  const std::lock_guard lock(all.mutex);
  return all.events;
}

}  // namespace weft
