// Families by the hash of their skeleton, in the budget of all caches.
#include "runtime/kernel_families.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/cache_budget.h"
#include "base/error.h"
#include "base/hash.h"
#include "codegen/general_kernel.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "runtime/loop_nest.h"
#include "schedule/size_use.h"
#include "schedule/skeleton.h"

namespace weft {
namespace {

constexpr size_t kMostSamples = 6, kMostFirst = 2;  // all, and of the first schedule
constexpr double kLittleWork = 1 << 16;  // elements: of kernels of one schedule that become one
constexpr size_t kMostGenerals = 8;      // of a family
constexpr size_t kMostWatched = 256;     // numbers of a family whose runs are counted
// What a compilation is worth, in elements; it doubles with each so many kernels of a family.
constexpr double kFirstPrice = double(1 << 20);
constexpr size_t kSameInPrice = 16;

std::atomic<uint64_t> schedules = 0;  // so many have asked

bool reads_memory(UOp size) {
  return std::ranges::any_of(toposort(size), [](UOp n) { return n.is(Op::LOAD); });
}

// Elements that one run stores, and takes in where it reduces. A loop whose size is read from
// memory counts once: the kernels that have any do little work.
double work_of(std::span<const UOp> order) {
  const LoopNest nest(order);
  double total = 0;
  for (UOp n : order) {
    if (!n.is(Op::REDUCE) && !n.is(Op::STORE)) continue;
    double rounds = 1;
    for (UOp range : nest.around(n)) {
      const UOp size = range.src(0);
      if (size.is_const() || !reads_memory(size)) rounds *= double(bounds(size).hi);
    }
    total += rounds;
  }
  return total;
}

struct KeyHash {
  size_t operator()(const Hash128& h) const { return size_t(h.low); }
};

Hash128 key_of_sizes(const KernelNumbers& numbers) {
  Hash128 h{};
  for (const Number& number : numbers.sizes) h = mix(h, uint64_t(number.value));
  return h;
}

// Kernels that differ in numbers.
class Family {
 public:
  ServedKernel serve(UOp kernel, const KernelNumbers& numbers, uint64_t schedule) {
    for (const std::shared_ptr<const GeneralKernel>& general : generals_) {
      if (auto values = general->rules.values(numbers)) {
        return {general, *std::move(values), use_of(*general, numbers, kernel)};
      }
    }
    if (is_closed_) return {};
    if (samples_.empty()) first_schedule_ = schedule;
    const bool is_first = schedule == first_schedule_;
    if (is_first && (samples_.size() < kMostFirst || work_of(toposort(kernel)) > kLittleWork)) {
      if (samples_.size() < kMostFirst) samples_.push_back(numbers);
      return {};
    }
    samples_.push_back(numbers);
    std::shared_ptr<const GeneralKernel> made;
    if (samples_.size() <= kMostSamples) made = made_general(kernel);
    auto values = made ? made->rules.values(numbers) : std::nullopt;
    if (!values) {  // these are not alike, but others may be like the last one
      samples_ = {numbers};
      is_extended_ = false;
      first_schedule_ = schedule;
      is_closed_ = ++failures_ > kMostGenerals;
      return {};
    }
    // It serves what the one before it did, if that was made from the same samples.
    if (is_extended_) generals_.pop_back();
    is_extended_ = true;
    generals_.push_back(made);
    return {made, *std::move(values), use_of(*made, numbers, kernel)};
  }

  void close() {
    is_closed_ = true;
    generals_.clear();
  }

  bool is_apart(const Hash128& sizes) const { return apart_.contains(sizes); }
  void set_apart(const Hash128& sizes) {
    apart_.insert(sizes);
    uses_.erase(sizes);
    *price_ = std::ldexp(kFirstPrice, int(apart_.size() / kSameInPrice));
  }

  size_t bytes() const {
    size_t total = sizeof *this + (uses_.size() + apart_.size()) * kEntryBytes;
    for (const KernelNumbers& s : samples_) {
      total += s.sizes.size() * sizeof(Number) + s.scalars.size() * sizeof(uint64_t);
    }
    for (const auto& general : generals_) total += general->kernel.arena->bytes();
    return total;
  }

 private:
  static constexpr size_t kEntryBytes = 128;  // about what an entry of a map takes

  // Null: a kernel of its own is always right.
  std::shared_ptr<const GeneralKernel> made_general(UOp kernel) const {
    std::optional<KernelRules> rules = KernelRules::of(kernel, samples_);
    if (!rules) return nullptr;
    auto made = std::make_shared<GeneralKernel>();
    try {
      made->kernel = rules->kernel(kernel);
    } catch (const SpecError&) {
      return nullptr;
    }
    made->hash = graph_hash(made->kernel.root);
    made->rules = *std::move(rules);
    return made;
  }

  // Null where no other sizes are served: a kernel of its own would not be faster.
  std::shared_ptr<SizeUse> use_of(const GeneralKernel& general, const KernelNumbers& numbers,
                                  UOp kernel) {
    if (!general.rules.has_variable_sizes()) return nullptr;
    if (uses_.size() == kMostWatched) uses_.clear();
    std::shared_ptr<SizeUse>& use = uses_[key_of_sizes(numbers)];
    if (!use) use = std::make_shared<SizeUse>(work_of(toposort(kernel)), price_);
    return use;
  }

  uint64_t first_schedule_ = 0;
  std::vector<KernelNumbers> samples_;  // of one general kernel
  std::vector<std::shared_ptr<const GeneralKernel>> generals_;
  bool is_extended_ = false;  // the last of them is made from `samples_`
  size_t failures_ = 0;       // samples that had no rules
  bool is_closed_ = false;    // no more are made
  std::unordered_map<Hash128, std::shared_ptr<SizeUse>, KeyHash> uses_;  // by sizes
  std::unordered_set<Hash128, KeyHash> apart_;  // sizes of families of their own
  std::shared_ptr<std::atomic<double>> price_ = std::make_shared<std::atomic<double>>(kFirstPrice);
};

class Families {
 public:
  ServedKernel serve(UOp kernel) {
    const KernelSkeleton skeleton = kernel_skeleton(kernel);
    const KernelNumbers& numbers = skeleton.numbers;
    if (numbers.sizes.empty() && numbers.scalars.empty()) return {};
    const Hash128 sizes = key_of_sizes(numbers);
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Family> of_all = family_of(skeleton.hash);
    if (!of_all->is_apart(sizes)) {
      ServedKernel served = of_all->serve(kernel, numbers, schedules);
      families_.set_bytes(skeleton.hash, of_all->bytes());
      if (!served.use || !served.use->is_spent()) return served;
      of_all->set_apart(sizes);
    }
    const Hash128 key = key_of_own(skeleton.hash, sizes);
    const std::shared_ptr<Family> own = family_of(key);
    ServedKernel served = own->serve(kernel, numbers, schedules);
    families_.set_bytes(key, own->bytes());
    return served;
  }

  void close(UOp kernel) {
    const KernelSkeleton skeleton = kernel_skeleton(kernel);
    const Hash128 sizes = key_of_sizes(skeleton.numbers);
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Family> of_all = family_of(skeleton.hash);
    const bool is_apart = of_all->is_apart(sizes);
    (is_apart ? family_of(key_of_own(skeleton.hash, sizes)) : of_all)->close();
  }

 private:
  // Of the kernels of a family that have these sizes.
  static Hash128 key_of_own(const Hash128& skeleton, const Hash128& sizes) {
    return mix(mix(skeleton, sizes.low), sizes.high);
  }
  std::shared_ptr<Family> family_of(const Hash128& key) {
    if (std::shared_ptr<Family> found = families_.find(key)) return found;
    auto made = std::make_shared<Family>();
    return families_.add(key, made, made->bytes());
  }

  std::mutex mutex_;  // of what families hold
  LruCache<Family> families_{"kernel families"};
};

Families& families() {
  static auto& instance = *new Families;  // outlives every thread
  return instance;
}

}  // namespace

ServedKernel serve_kernel(UOp kernel) { return families().serve(kernel); }
void close_kernel_family(UOp kernel) { families().close(kernel); }
void begin_kernels_of_schedule() { schedules++; }

}  // namespace weft
