// A map from hashes to schedules, and a list by last use.
#include "schedule/schedule_cache.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "schedule/general_schedule.h"
#include "schedule/graph_key.h"
#include "schedule/schedule.h"
#include "schedule/size_use.h"
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

// What a schedule of its own costs a graph whose sizes are variables of a general one, in elements
// (SizeUse). It rises with the graphs of the family that have one, so that a family of very many
// sizes is not compiled for each.
constexpr double kFirstPrice = double(1 << 30);
constexpr size_t kSameInPrice = 4;
constexpr size_t kMostWatched = 256;  // sizes of a family that are counted

// Elements that reductions take in and that are stored, all together.
double work_of(std::span<const UOp> order) {
  double total = 0;
  for (UOp n : order) {
    const bool is_stored = n.is(Op::STORE) || n.is(Op::CONTIGUOUS);
    if (!is_stored && !n.is(Op::REDUCE_AXIS) && !n.is(Op::SCAN)) continue;
    double count = 1;
    for (const Dim& d : shape_of(is_stored ? n : n.src(0))) {
      count *= d.is_int() ? double(d.value()) : 1;
    }
    total += count;
  }
  return total;
}

// Of the family with this key, and the sizes of a graph: not of its offsets.
Hash128 key_of_sizes(Hash128 h, const Skeleton& skeleton) {
  for (const Number& number : skeleton.numbers) {
    if (number.kind == Number::Kind::kSize) h = mix(h, uint64_t(number.value));
  }
  return mix(h, skeleton.numbers.size());
}

struct KeyHash {
  size_t operator()(const Hash128& h) const { return size_t(h.low); }
};

// Graphs that differ in numbers. The second one to come makes those that differ parameters; one
// that does not fit makes it anew, a few times. Sizes that do much work become a family of their
// own, in which scalars and offsets differ.
class Family {
 public:
  explicit Family(const Hash128& sizes) : first_sizes_(sizes) {}

  std::vector<Sample> samples;                     // graphs that had schedules made
  std::shared_ptr<const GeneralSchedule> general;  // null at first
  size_t calls = 0;                                // of the first one's schedule
  bool is_closed = false;                          // every further graph gets its own

  // Counts a run of a graph with these sizes; null where the general schedule is as good as one
  // for them.
  std::shared_ptr<SizeUse> use_of(const Hash128& sizes, std::span<const UOp> order) {
    if (sizes == first_sizes_ && !(general && general->has_variable_sizes)) return nullptr;
    if (uses_.size() == kMostWatched) uses_.clear();
    std::shared_ptr<SizeUse>& use = uses_[sizes];
    if (!use) use = std::make_shared<SizeUse>(work_of(order), price_);
    use->count_run();
    return use;
  }
  bool is_apart(const Hash128& sizes) const { return apart_.contains(sizes); }
  void set_apart(const Hash128& sizes) {
    apart_.insert(sizes);
    uses_.erase(sizes);
    const size_t doublings = apart_.size() / kSameInPrice;
    *price_ = std::ldexp(kFirstPrice, int(doublings));
  }

 private:
  Hash128 first_sizes_;
  std::unordered_map<Hash128, std::shared_ptr<SizeUse>, KeyHash> uses_;  // of the general schedule
  std::unordered_set<Hash128, KeyHash> apart_;  // sizes of families of their own
  std::shared_ptr<std::atomic<double>> price_ = std::make_shared<std::atomic<double>>(kFirstPrice);
};

class Cache {
 public:
  // A schedule for a graph whose skeleton is known; null for the first of its family, and where too
  // much differs. `new_family` gets the key of a family that is new.
  std::shared_ptr<const Schedule> find_general(std::span<const UOp> order,
                                               const ScheduleOptions& options,
                                               std::optional<Hash128>& new_family) {
    const auto is_symbolic = [](UOp n) { return n.is(Op::VARIABLE); };
    if (order.size() > kMostFamilyNodes || std::ranges::any_of(order, is_symbolic)) return nullptr;
    const Skeleton skeleton = skeleton_of(order);
    Sample sample = sample_of(skeleton);
    const std::lock_guard lock(family_mutex_);
    if (families_.size() > kMostFamilies) families_.clear();
    const Hash128 key = schedule_key(skeleton.hash, options), sizes = key_of_sizes(key, skeleton);
    auto [at, is_new] = families_.try_emplace(key, sizes);
    std::shared_ptr<SizeUse> use;
    if (!is_new && !at->second.is_apart(sizes)) {
      use = at->second.use_of(sizes, order);
      if (use && use->is_spent()) at->second.set_apart(sizes);
    }
    if (at->second.is_apart(sizes)) std::tie(at, is_new) = families_.try_emplace(sizes, sizes);
    Family& family = at->second;
    if (is_new) {
      family.samples.push_back(std::move(sample));
      new_family = at->first;
      return nullptr;
    }
    if (family.general) {
      if (std::shared_ptr<Schedule> bound = bind_numbers(*family.general, sample)) {
        bound->use = std::move(use);
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
    std::shared_ptr<Schedule> bound = bind_numbers(*made, family.samples.back());
    if (bound) bound->use = std::move(use);
    return bound;
  }

  // Every graph of this family gets its own schedule.
  void close_family(std::span<const UOp> order, const ScheduleOptions& options) {
    const Skeleton skeleton = skeleton_of(order);
    const Hash128 key = schedule_key(skeleton.hash, options), sizes = key_of_sizes(key, skeleton);
    const std::lock_guard lock(family_mutex_);
    auto at = families_.find(key);
    if (at != families_.end() && at->second.is_apart(sizes)) at = families_.find(sizes);
    if (at == families_.end()) return;
    at->second.is_closed = true;
    at->second.general = nullptr;
  }

  // Kernels of loop programs take numbers from tables: schedules for others are not general.
  void note_first(const Hash128& family, const Schedule& made) {
    const std::lock_guard lock(family_mutex_);
    const auto at = families_.find(family);
    if (at == families_.end()) return;
    at->second.calls = made.calls.size();
    at->second.is_closed = !made.output_firsts.empty();
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
    counts_.loaded = loaded_schedules() - loaded_before_;
    return counts_;
  }

  void clear() {
    const std::lock_guard families(family_mutex_);  // always before the other one
    const std::lock_guard lock(mutex_);
    families_.clear();
    entries_.clear();
    order_.clear();
    counts_ = {};
    loaded_before_ = loaded_schedules();
    bytes_ = 0;
  }

 private:
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
  uint64_t loaded_before_ = 0;  // schedules, when counting began
  size_t bytes_ = 0;
};

Cache& cache() {
  static auto& instance = *new Cache;  // outlives every thread
  return instance;
}

}  // namespace

std::shared_ptr<const Schedule> cached_schedule(UOp sink, const ScheduleOptions& options) {
  std::vector<UOp> order = toposort(sink);
  const Hash128 key = schedule_key(graph_key(order), options);
  if (std::shared_ptr<const Schedule> found = cache().find(key)) return found;
  std::optional<Hash128> new_family;
  if (options.sizes == ServedSizes::kAny) {
    if (auto general = cache().find_general(order, options, new_family)) return general;
  } else {
    cache().close_family(order, options);
  }
  auto made = std::make_shared<const Schedule>(stored_schedule(std::move(order), options));
  cache().add(key, made);
  if (new_family) cache().note_first(*new_family, *made);
  return made;
}

ScheduleCacheCounts schedule_cache_counts() { return cache().counts(); }
void clear_schedule_cache() { cache().clear(); }

}  // namespace weft
