// How often each operator was done by weft, and by PyTorch's CPU kernels instead.
#include "counters.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace weft::pytorch {
namespace {

std::atomic<OperatorCount*>& first_count() {
  static std::atomic<OperatorCount*> first = nullptr;
  return first;
}

struct Fallbacks {
  std::mutex mutex;
  std::map<std::string, int64_t> counts;
};
Fallbacks& fallbacks() {
  static auto* const kFallbacks = new Fallbacks;
  return *kFallbacks;
}

}  // namespace

OperatorCount::OperatorCount(std::string name) : name_(std::move(name)) {
  next_ = first_count().load();
  while (!first_count().compare_exchange_weak(next_, this)) {
  }
}

std::map<std::string, int64_t> native_counts() {
  std::map<std::string, int64_t> counts;
  for (const OperatorCount* c = first_count().load(); c != nullptr; c = c->next_) {
    if (const int64_t count = c->count_.load(std::memory_order_relaxed)) counts[c->name_] += count;
  }
  return counts;
}

std::map<std::string, int64_t> fallback_counts() {
  const std::lock_guard lock(fallbacks().mutex);
  return fallbacks().counts;
}

void count_fallback(const std::string& name) {
  const std::lock_guard lock(fallbacks().mutex);
  fallbacks().counts[name]++;
}

void reset_counts() {
  for (OperatorCount* c = first_count().load(); c != nullptr; c = c->next_) c->count_ = 0;
  const std::lock_guard lock(fallbacks().mutex);
  fallbacks().counts.clear();
}

}  // namespace weft::pytorch
