// A map from hashes to schedules, and a list by last use.
#include "schedule/schedule_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/walk.h"
#include "schedule/graph_key.h"
#include "schedule/scalar_parameters.h"
#include "schedule/schedule.h"
#include "schedule/store_schedule.h"

namespace weft {
namespace {

constexpr size_t kMostSchedules = 4096;
constexpr size_t kMostBytes = size_t(256) << 20;

constexpr size_t kMostFamilies = 1024;
constexpr size_t kMostParameters = 32;
constexpr size_t kMostFamilyNodes = size_t(1)
                                    << 16;  // larger graphs are worth a schedule of their own

Hash128 key_of(Hash128 h, const ScheduleOptions& o) {
  h = mix(h, hash_bytes_128(o.device));
  for (const size_t limit : {o.limits.statements, o.limits.buffers, o.limits.writes,
                             o.limits.accumulators, size_t(o.limits.sequences)}) {
    h = mix(h, limit);
  }
  h = mix(h, o.dying.size());
  for (const int64_t id : o.dying) h = mix(h, uint64_t(id));
  return h;
}

// Graphs that differ in their scalars. The second one to come makes those that differ parameters.
struct Family {
  std::vector<uint64_t> first;  // scalars of the first graph
  std::vector<size_t> varying;  // places where others had another one
  GeneralSchedule general;      // with these as parameters; none at first
};

class Cache {
 public:
  // A schedule for a graph whose skeleton is known; null for the first of its family, and where too
  // much differs. Called by one thread at a time.
  std::shared_ptr<const Schedule> find_general(UOp sink, const ScheduleOptions& options) {
    if (sink.arena().size() > kMostFamilyNodes) return nullptr;
    const Skeleton skeleton = skeleton_of(sink);
    if (skeleton.scalars.empty()) return nullptr;
    const std::lock_guard lock(family_mutex_);
    if (families_.size() > kMostFamilies) families_.clear();
    const auto [at, is_new] = families_.try_emplace(key_of(skeleton.hash, options));
    Family& family = at->second;
    if (is_new) {
      for (UOp c : skeleton.scalars) family.first.push_back(c.bits());
      return nullptr;
    }
    if (family.first.size() != skeleton.scalars.size()) return nullptr;
    std::vector<size_t> varying = family.varying;
    for (size_t i = 0; i < family.first.size(); i++) {
      const bool is_known = std::ranges::binary_search(family.varying, i);
      if (!is_known && skeleton.scalars[i].bits() != family.first[i]) varying.push_back(i);
    }
    if (varying.empty() || varying.size() > kMostParameters) return nullptr;
    const bool is_made = family.general.schedule && varying.size() == family.varying.size();
    if (!is_made) {
      std::ranges::sort(varying);
      family.general = stored_general(sink, skeleton, varying, options);
      family.varying = std::move(varying);
    } else {
      const std::lock_guard counting(mutex_);
      counts_.hits++;
      counts_.misses--;
    }
    return with_scalars(family.general, skeleton.scalars);
  }

  // The schedule that another process made; it is the first of its family here.
  std::shared_ptr<const Schedule> load(const Hash128& key, UOp sink,
                                       const ScheduleOptions& options) {
    std::optional<Schedule> stored = load_schedule(options.store, key);
    if (!stored) return nullptr;
    auto schedule = std::make_shared<const Schedule>(std::move(*stored));
    add(key, schedule);
    {
      const std::lock_guard lock(mutex_);
      counts_.loaded++;
    }
    begin_family(sink, options);
    return schedule;
  }

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
    const auto [at, is_new] =
        entries_.try_emplace(key, Entry{std::move(schedule), bytes, order_.begin()});
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
    const std::lock_guard families(family_mutex_);  // always before the other one
    const std::lock_guard lock(mutex_);
    families_.clear();
    entries_.clear();
    order_.clear();
    counts_ = {};
    bytes_ = 0;
  }

 private:
  void begin_family(UOp sink, const ScheduleOptions& options) {
    if (sink.arena().size() > kMostFamilyNodes) return;
    const Skeleton skeleton = skeleton_of(sink);
    if (skeleton.scalars.empty()) return;
    const std::lock_guard lock(family_mutex_);
    const auto [at, is_new] = families_.try_emplace(key_of(skeleton.hash, options));
    if (!is_new) return;
    for (UOp c : skeleton.scalars) at->second.first.push_back(c.bits());
  }

  GeneralSchedule stored_general(UOp sink, const Skeleton& skeleton,
                                 std::span<const size_t> varying, const ScheduleOptions& options) {
    Hash128 key = mix(key_of(skeleton.hash, options), varying.size());
    for (const size_t v : varying) key = mix(key, v);
    if (std::optional<GeneralSchedule> stored = load_general_schedule(options.store, key)) {
      const std::lock_guard counting(mutex_);
      counts_.loaded++;
      return std::move(*stored);
    }
    GeneralSchedule made = make_general_schedule(sink, skeleton, varying, options);
    store_general_schedule(options.store, key, made);
    return made;
  }

  struct KeyHash {
    size_t operator()(const Hash128& h) const { return size_t(h.low); }
  };
  struct Entry {
    std::shared_ptr<const Schedule> schedule;
    size_t bytes;
    std::list<Hash128>::iterator place;
  };

  std::mutex family_mutex_;
  std::unordered_map<Hash128, Family, KeyHash> families_;
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
  std::vector<UOp> order = toposort(sink);
  const Hash128 key = key_of(graph_key(order), options);
  if (std::shared_ptr<const Schedule> found = cache().find(key)) return found;
  if (std::shared_ptr<const Schedule> loaded = cache().load(key, sink, options)) return loaded;
  if (std::shared_ptr<const Schedule> general = cache().find_general(sink, options)) return general;
  auto made = std::make_shared<const Schedule>(make_schedule(std::move(order), options));
  cache().add(key, made);
  store_schedule(options.store, key, *made);
  return made;
}

ScheduleCacheCounts schedule_cache_counts() { return cache().counts(); }
void clear_schedule_cache() { cache().clear(); }

}  // namespace weft
