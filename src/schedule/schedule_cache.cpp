// A map from hashes to schedules, and a list by last use.
#include "schedule/schedule_cache.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/walk.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

constexpr size_t kMostSchedules = 4096;
constexpr size_t kMostBytes = size_t(256) << 20;

Hash128 key_of(UOp sink, const ScheduleOptions& o) {
  Hash128 h = graph_hash(sink);
  h = mix(h, hash_bytes_128(o.device));
  for (const size_t limit : {o.limits.statements, o.limits.buffers, o.limits.writes,
                             o.limits.accumulators, size_t(o.limits.sequences)}) {
    h = mix(h, limit);
  }
  h = mix(h, o.dying.size());
  for (const int64_t id : o.dying) h = mix(h, uint64_t(id));
  return h;
}

class Cache {
 public:
  std::shared_ptr<const Schedule> find(const Hash128& key) {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(key);
    if (at == entries_.end()) {
      counts_.misses++;
      return nullptr;
    }
    counts_.hits++;
    order_.splice(order_.begin(), order_, at->second.place);
    return at->second.schedule;
  }

  void add(const Hash128& key, std::shared_ptr<const Schedule> schedule) {
    const std::lock_guard lock(mutex_);
    const size_t bytes = schedule->bytes();
    order_.push_front(key);
    const auto [at, is_new] = entries_.try_emplace(key, Entry{std::move(schedule), bytes,
                                                              order_.begin()});
    if (!is_new) {  // another thread made it meanwhile
      order_.pop_front();
      return;
    }
    bytes_ += bytes;
    while (entries_.size() > 1 && (entries_.size() > kMostSchedules || bytes_ > kMostBytes)) {
      const auto last = entries_.find(order_.back());
      bytes_ -= last->second.bytes;
      entries_.erase(last);
      order_.pop_back();
    }
  }

  ScheduleCacheCounts counts() {
    const std::lock_guard lock(mutex_);
    counts_.schedules = entries_.size();
    return counts_;
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    entries_.clear();
    order_.clear();
    counts_ = {};
    bytes_ = 0;
  }

 private:
  struct KeyHash {
    size_t operator()(const Hash128& h) const { return size_t(h.low); }
  };
  struct Entry {
    std::shared_ptr<const Schedule> schedule;
    size_t bytes;
    std::list<Hash128>::iterator place;
  };

  std::mutex mutex_;
  std::list<Hash128> order_;  // most recently used first
  std::unordered_map<Hash128, Entry, KeyHash> entries_;
  ScheduleCacheCounts counts_;
  size_t bytes_ = 0;
};

Cache& cache() {
  static auto& instance = *new Cache;  // outlives every thread
  return instance;
}

}  // namespace

std::shared_ptr<const Schedule> cached_schedule(UOp sink, const ScheduleOptions& options) {
  const Hash128 key = key_of(sink, options);
  if (std::shared_ptr<const Schedule> found = cache().find(key)) return found;
  auto made = std::make_shared<const Schedule>(make_schedule(sink, options));
  cache().add(key, made);
  return made;
}

ScheduleCacheCounts schedule_cache_counts() { return cache().counts(); }
void clear_schedule_cache() { cache().clear(); }

}  // namespace weft
