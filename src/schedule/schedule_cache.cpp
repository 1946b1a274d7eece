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
#include "ir/op.h"
#include "ir/walk.h"
#include "schedule/general_schedule.h"
#include "schedule/graph_key.h"
#include "schedule/schedule.h"
#include "schedule/skeleton.h"
#include "schedule/store_schedule.h"

namespace weft {
namespace {

constexpr size_t kMostSchedules = 4096;
constexpr size_t kMostBytes = size_t(256) << 20;

constexpr size_t kMostFamilies = 1024;
constexpr size_t kMostSamples = 4;
constexpr size_t kMostCalls = 2;  // of a general schedule, for each of one that is not
constexpr size_t kMostFamilyNodes = size_t(1)
                                    << 16;  // larger graphs are worth a schedule of their own

Hash128 key_of(Hash128 h, const ScheduleOptions& o) {
  h = mix(h, hash_bytes_128(o.device));
  for (const size_t limit : {o.limits.statements, o.limits.buffers, o.limits.writes,
                             o.limits.accumulators, o.limits.pieces, size_t(o.limits.sequences)}) {
    h = mix(h, limit);
  }
  h = mix(h, o.dying.size());
  for (const int64_t id : o.dying) h = mix(h, uint64_t(id));
  return h;
}

// Graphs that differ in numbers. The second one to come makes those that differ parameters; one
// that does not fit makes it anew, a few times.
struct Family {
  std::vector<Sample> samples;                     // graphs that had schedules made
  std::shared_ptr<const GeneralSchedule> general;  // null at first
  size_t calls = 0;                                // of the first one's schedule
  bool is_closed = false;                          // every further graph gets its own
};

class Cache {
 public:
  // A schedule for a graph whose skeleton is known; null for the first of its family, and where too
  // much differs. `family` gets the key of a family that is new.
  std::shared_ptr<const Schedule> find_general(std::span<const UOp> order,
                                               const ScheduleOptions& options,
                                               std::optional<Hash128>& new_family) {
    if (!may_have_family(order)) return nullptr;
    const Skeleton skeleton = skeleton_of(order);
    Sample sample = sample_of(skeleton);
    const std::lock_guard lock(family_mutex_);
    if (families_.size() > kMostFamilies) families_.clear();
    const Hash128 key = key_of(skeleton.hash, options);
    const auto [at, is_new] = families_.try_emplace(key);
    Family& family = at->second;
    if (is_new) {
      family.samples.push_back(std::move(sample));
      new_family = key;
      return nullptr;
    }
    if (family.general) {
      if (std::shared_ptr<const Schedule> bound = bind_numbers(*family.general, sample)) {
        const std::lock_guard counting(mutex_);
        counts_.hits++;
        counts_.misses--;
        return bound;
      }
    }
    if (family.is_closed) return nullptr;
    family.samples.push_back(std::move(sample));
    family.is_closed = family.samples.size() == kMostSamples;
    const auto made = make_general_schedule(order, family.samples, options);
    if (!made || made->schedule->calls.size() > kMostCalls * family.calls) {
      family.is_closed = true;
      return nullptr;
    }
    family.general = made;
    return bind_numbers(*made, family.samples.back());
  }

  void note_calls(const Hash128& family, size_t calls) {
    const std::lock_guard lock(family_mutex_);
    const auto at = families_.find(family);
    if (at != families_.end()) at->second.calls = calls;
  }

  // The schedule that another process made; it is the first of its family here.
  std::shared_ptr<const Schedule> load(const Hash128& key, std::span<const UOp> order,
                                       const ScheduleOptions& options) {
    std::optional<Schedule> stored = load_schedule(options.store, key);
    if (!stored) return nullptr;
    auto schedule = std::make_shared<const Schedule>(std::move(*stored));
    add(key, schedule);
    {
      const std::lock_guard lock(mutex_);
      counts_.loaded++;
    }
    begin_family(order, options, schedule->calls.size());
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
  void begin_family(std::span<const UOp> order, const ScheduleOptions& options, size_t calls) {
    if (!may_have_family(order)) return;
    const Skeleton skeleton = skeleton_of(order);
    const std::lock_guard lock(family_mutex_);
    const auto [at, is_new] = families_.try_emplace(key_of(skeleton.hash, options));
    if (!is_new) return;
    at->second.samples.push_back(sample_of(skeleton));
    at->second.calls = calls;
  }

  static bool may_have_family(std::span<const UOp> order) {
    return order.size() <= kMostFamilyNodes &&
           std::ranges::none_of(order, [](UOp n) { return n.is(Op::VARIABLE); });
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
  if (std::shared_ptr<const Schedule> loaded = cache().load(key, order, options)) return loaded;
  std::optional<Hash128> new_family;
  if (auto general = cache().find_general(order, options, new_family)) return general;
  auto made = std::make_shared<const Schedule>(make_schedule(std::move(order), options));
  cache().add(key, made);
  if (new_family) cache().note_calls(*new_family, made->calls.size());
  store_schedule(options.store, key, *made);
  return made;
}

ScheduleCacheCounts schedule_cache_counts() { return cache().counts(); }
void clear_schedule_cache() { cache().clear(); }

}  // namespace weft
