// A list of caches, the oldest entry of which goes.
#include "base/cache_budget.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.h"

namespace weft {
namespace {

struct Caches {
  std::mutex mutex;
  std::vector<BudgetedCache*> list;
};

Caches& caches() {
  static auto& instance = *new Caches;  // outlives every thread
  return instance;
}

size_t bytes_of_all(const Caches& all) {
  size_t total = 0;
  for (const BudgetedCache* cache : all.list) total += cache->bytes();
  return total;
}

// Null when nothing could go.
std::shared_ptr<const void> take_oldest_of(const Caches& all) {
  BudgetedCache* of = nullptr;
  uint64_t least = BudgetedCache::kNothing;
  for (BudgetedCache* cache : all.list) {
    const uint64_t oldest = cache->oldest();
    if (oldest >= least) continue;
    least = oldest;
    of = cache;
  }
  return of == nullptr ? nullptr : of->take_oldest();
}

}  // namespace

BudgetedCache::BudgetedCache(std::string_view name) : name_(name) {
  const std::lock_guard lock(caches().mutex);
  caches().list.push_back(this);
}

uint64_t next_use() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

namespace {

void shrink_to(size_t most) {
  std::vector<std::shared_ptr<const void>> gone;  // freed without the lock
  const std::lock_guard lock(caches().mutex);
  while (bytes_of_all(caches()) > most) {
    gone.push_back(take_oldest_of(caches()));
    if (!gone.back()) return;
  }
}

}  // namespace

void keep_within_budget() { shrink_to(size_t(config().most_cached_bytes)); }
void drop_cached() { shrink_to(0); }

std::vector<std::pair<std::string_view, size_t>> bytes_of_caches() {
  std::vector<std::pair<std::string_view, size_t>> bytes;
  const std::lock_guard lock(caches().mutex);
  for (const BudgetedCache* cache : caches().list)
    bytes.emplace_back(cache->name(), cache->bytes());
  return bytes;
}

}  // namespace weft
