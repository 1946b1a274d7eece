// Caches of one process that share one bound in bytes: whatever was used least recently goes first,
// wherever it lies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace weft {

// What the budget knows of a cache. It outlives every thread.
class BudgetedCache {
 public:
  explicit BudgetedCache(std::string_view name);
  BudgetedCache(const BudgetedCache&) = delete;
  BudgetedCache& operator=(const BudgetedCache&) = delete;

  std::string_view name() const { return name_; }
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  static constexpr uint64_t kNothing = std::numeric_limits<uint64_t>::max();
  // When that was used which goes next; kNothing: there is nothing that could go.
  virtual uint64_t oldest() = 0;
  // Takes it out; the caller lets go of it, without locks.
  virtual std::shared_ptr<const void> take_oldest() = 0;

 protected:
  ~BudgetedCache() = default;
  void add_bytes(size_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void take_bytes(size_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::string_view name_;
  std::atomic<size_t> bytes_ = 0;
};

// A time that is later than all before it.
uint64_t next_use();
// Lets go of entries until all caches together are within Config::most_cached_bytes. No lock of a
// cache is held.
void keep_within_budget();
// Lets go of all that nobody else holds.
void drop_cached();
// Of every cache.
std::vector<std::pair<std::string_view, size_t>> bytes_of_caches();

// Values by key. Thread-safe.
template <class Value>
class LruCache final : public BudgetedCache {
 public:
  explicit LruCache(std::string_view name) : BudgetedCache(name) {}

  // Null when it is not there.
  std::shared_ptr<Value> find(const Hash128& key) {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(key);
    if (at == entries_.end()) return nullptr;
    use(at->second);
    return at->second.value;
  }

  // That of another thread, if it came first. `bytes` is what the process saves without it.
  std::shared_ptr<Value> add(const Hash128& key, std::shared_ptr<Value> value, size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const auto [at, is_new] = entries_.try_emplace(key);
      if (!is_new) return at->second.value;
      order_.push_front(key);
      at->second = {value, bytes, next_use(), order_.begin()};
      add_bytes(bytes);
    }
    keep_within_budget();
    return value;
  }

  // An entry has become larger, or smaller.
  void set_bytes(const Hash128& key, size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const auto at = entries_.find(key);
      if (at == entries_.end()) return;
      add_bytes(bytes);
      take_bytes(std::exchange(at->second.bytes, bytes));
    }
    keep_within_budget();
  }

  uint64_t oldest() override {
    const std::lock_guard lock(mutex_);
    const Entry* entry = next_to_go();
    return entry == nullptr ? kNothing : entry->used;
  }

  std::shared_ptr<const void> take_oldest() override {
    const std::lock_guard lock(mutex_);
    if (next_to_go() == nullptr) return nullptr;
    const auto at = entries_.find(order_.back());
    std::shared_ptr<const void> value = std::move(at->second.value);
    take_bytes(at->second.bytes);
    order_.pop_back();
    entries_.erase(at);
    return value;
  }

  size_t size() {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

  void clear() {
    std::unordered_map<Hash128, Entry, KeyHash> gone;
    const std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : entries_) take_bytes(entry.bytes);
    gone.swap(entries_);
    order_.clear();
  }

 private:
  struct Entry {
    std::shared_ptr<Value> value;
    size_t bytes = 0;
    uint64_t used = 0;
    std::list<Hash128>::iterator place;
  };
  struct KeyHash {
    size_t operator()(const Hash128& h) const { return size_t(h.low); }
  };

  void use(Entry& entry) {
    entry.used = next_use();
    order_.splice(order_.begin(), order_, entry.place);
  }

  // What somebody else holds would not be freed: it counts as used.
  const Entry* next_to_go() {
    for (size_t i = 0; i < order_.size(); i++) {
      Entry& entry = entries_.find(order_.back())->second;
      if (entry.value.use_count() == 1) return &entry;
      use(entry);
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::list<Hash128> order_;  // most recently used first
  std::unordered_map<Hash128, Entry, KeyHash> entries_;
};

}  // namespace weft
