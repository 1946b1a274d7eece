// A map from hashes to schedules, and a list by last use.
#include "schedule/schedule_cache.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/cache_budget.h"
#include "base/hash.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
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

constexpr size_t kMostSamples = 4;
constexpr size_t kMostCalls = 2;  // of a general schedule, for each of one that is not
constexpr size_t kMostFamilyNodes = size_t(1)
                                    << 16;  // larger graphs are worth a schedule of their own

// What a schedule of its own costs a graph whose sizes are variables of a general one, in elements
// (SizeUse). It rises with the graphs of the family that have one, so that a family of very many
// sizes is not compiled for each.
constexpr double kFirstPrice = double(1 << 20);
constexpr size_t kSameInPrice = 16;
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

void say(const ScheduleOptions& options, const std::string& why) {
  if (options.why_made != nullptr) *options.why_made = why;
}

// What makes a graph another one than the one before it.
std::string difference(const Sample& before, const Sample& now) {
  for (size_t i = 0; i < std::min(before.numbers.size(), now.numbers.size()); i++) {
    const Number &a = before.numbers[i], &b = now.numbers[i];
    if (a.value == b.value) continue;
    return fmt::format("{} was {} and is {}",
                       b.kind == Number::Kind::kSize ? "a size" : "an offset", a.value, b.value);
  }
  for (size_t i = 0; i < std::min(before.scalars.size(), now.scalars.size()); i++) {
    if (before.scalars[i] == now.scalars[i]) continue;
    return fmt::format("scalar {} of the graph has another value", i);
  }
  return "the graph differs in numbers";
}

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
  size_t bytes() const {
    size_t total = sizeof *this;
    for (const Sample& s : samples) {
      total +=
          sizeof s + s.numbers.size() * sizeof s.numbers[0] + s.scalars.size() * sizeof(uint64_t);
    }
    if (general) total += general->bytes();
    return total + uses_.size() * kUseBytes + apart_.size() * kUseBytes;
  }

  bool is_apart(const Hash128& sizes) const { return apart_.contains(sizes); }
  void set_apart(const Hash128& sizes) {
    apart_.insert(sizes);
    uses_.erase(sizes);
    const size_t doublings = apart_.size() / kSameInPrice;
    *price_ = std::ldexp(kFirstPrice, int(doublings));
  }

 private:
  static constexpr size_t kUseBytes = 128;  // about what an entry of a map takes

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
    const Skeleton skeleton = skeleton_of(order, Scalars::kByUse);
    Sample sample = sample_of(skeleton);
    const std::lock_guard lock(family_mutex_);
    Hash128 key = schedule_key(skeleton.hash, options);
    const Hash128 sizes = key_of_sizes(key, skeleton);
    std::shared_ptr<Family> of_all = families_.find(key);
    std::shared_ptr<SizeUse> use;
    if (of_all && !of_all->is_apart(sizes)) {
      use = of_all->use_of(sizes, order);
      if (use && use->is_spent()) of_all->set_apart(sizes);
    }
    std::shared_ptr<Family> found = of_all;
    if (of_all && of_all->is_apart(sizes)) {
      key = sizes;
      found = families_.find(key);
    }
    if (!found) {
      found = std::make_shared<Family>(sizes);
      found->samples.push_back(std::move(sample));
      families_.add(key, found, found->bytes());
      new_family = key;
      say(options, "no graph of this structure was scheduled before");
      return nullptr;
    }
    Family& family = *found;
    if (family.general) {
      if (std::shared_ptr<Schedule> bound = bind_numbers(*family.general, sample)) {
        bound->use = std::move(use);
        hits_++;
        misses_--;
        return bound;
      }
    }
    if (family.is_closed) return nullptr;
    if (options.why_made != nullptr) say(options, difference(family.samples.back(), sample));
    family.samples.push_back(std::move(sample));
    family.is_closed = family.samples.size() == kMostSamples;
    const auto made = make_general_schedule(order, family.samples, options);
    if (!made || made->schedule->calls.size() > kMostCalls * family.calls) {
      family.is_closed = true;
      return nullptr;
    }
    family.general = made;
    families_.set_bytes(key, family.bytes());
    std::shared_ptr<Schedule> bound = bind_numbers(*made, family.samples.back());
    if (bound) bound->use = std::move(use);
    return bound;
  }

  // Every graph of this family gets its own schedule.
  void close_family(std::span<const UOp> order, const ScheduleOptions& options) {
    const Skeleton skeleton = skeleton_of(order, Scalars::kByUse);
    Hash128 key = schedule_key(skeleton.hash, options);
    const Hash128 sizes = key_of_sizes(key, skeleton);
    const std::lock_guard lock(family_mutex_);
    std::shared_ptr<Family> family = families_.find(key);
    if (family && family->is_apart(sizes)) family = families_.find(key = sizes);
    if (!family) return;
    family->is_closed = true;
    family->general = nullptr;
    families_.set_bytes(key, family->bytes());
  }

  // Kernels of loop programs take numbers from tables: schedules for others are not general.
  void note_first(const Hash128& family, const Schedule& made) {
    const std::lock_guard lock(family_mutex_);
    const std::shared_ptr<Family> found = families_.find(family);
    if (!found) return;
    found->calls = made.calls.size();
    found->is_closed = !made.output_firsts.empty();
  }

  std::shared_ptr<const Schedule> find(const Hash128& key) {
    std::shared_ptr<const Schedule> found = schedules_.find(key);
    (found ? hits_ : misses_)++;
    return found;
  }

  void add(const Hash128& key, const std::shared_ptr<const Schedule>& schedule) {
    schedules_.add(key, schedule, schedule->bytes());
  }

  ScheduleCacheCounts counts() {
    return {.hits = hits_,
            .misses = misses_,
            .loaded = loaded_schedules() - loaded_before_,
            .schedules = schedules_.size()};
  }

  void clear() {
    const std::lock_guard lock(family_mutex_);
    families_.clear();
    schedules_.clear();
    hits_ = 0;
    misses_ = 0;
    loaded_before_ = loaded_schedules();
  }

 private:
  std::mutex family_mutex_;  // of what families hold
  LruCache<Family> families_{"families"};
  LruCache<const Schedule> schedules_{"schedules"};
  std::atomic<uint64_t> hits_ = 0, misses_ = 0;
  std::atomic<uint64_t> loaded_before_ = 0;  // schedules, when counting began
};

Cache& cache() {
  static auto& instance = *new Cache;  // outlives every thread
  return instance;
}

}  // namespace

std::shared_ptr<const Schedule> cached_schedule(UOp sink, const ScheduleOptions& options) {
  const OriginsScope noting(options.origins);
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
void clear_schedule_cache() {
  cache().clear();
  drop_cached();  // programs that only those schedules used
}

}  // namespace weft
