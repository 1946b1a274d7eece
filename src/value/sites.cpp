// A table beside the Values: they have no room for what is rarely asked.
#include "value/sites.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace weft {
namespace {

struct Table {
  std::mutex mutex;
  std::unordered_map<const Value*, uint32_t> sites;
};
Table& table() {
  static auto& instance = *new Table;  // outlives every Value
  return instance;
}

std::atomic<bool> was_ever_noted = false;
thread_local uint32_t site_of_scope = 0;

}  // namespace

namespace detail {

std::atomic<SiteSource> site_source = nullptr;

void note_site(const Value* value) {
  const uint32_t site = site_of_call();
  if (site == 0) return;
  const std::lock_guard lock(table().mutex);
  table().sites[value] = site;
}

void forget_site(const Value* value) {
  if (!was_ever_noted.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(table().mutex);
  table().sites.erase(value);
}

}  // namespace detail

void note_sites(SiteSource source) {
  if (source != nullptr) was_ever_noted = true;
  detail::site_source = source;
}

uint32_t site_of_call() {
  if (site_of_scope != 0) return site_of_scope;
  const SiteSource source = detail::site_source.load(std::memory_order_relaxed);
  return source == nullptr ? 0 : source();
}

uint32_t site_of_value(const Value& value) {
  const std::lock_guard lock(table().mutex);
  const auto at = table().sites.find(&value);
  return at == table().sites.end() ? 0 : at->second;
}

SiteScope::SiteScope(uint32_t site) : outer_(std::exchange(site_of_scope, site)) {}
SiteScope::~SiteScope() { site_of_scope = outer_; }

}  // namespace weft
