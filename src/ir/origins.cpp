// Small sorted lists of sites, by node.
#include "ir/origins.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "ir/node.h"

namespace weft {
namespace {

// For ever: there are as many as lines that were run.
struct Sites {
  std::mutex mutex;
  std::vector<Site> list{{}};  // number 0
  std::map<std::pair<std::string, int>, uint32_t> numbers;
};
Sites& sites() {
  static auto& instance = *new Sites;
  return instance;
}

thread_local Origins* of_thread = nullptr;

}  // namespace

namespace detail {

std::atomic<int> origins_in_use = 0;

void follow_origin(UOp from, UOp to) {
  if (of_thread != nullptr && from && to) of_thread->follow(from, to);
}

}  // namespace detail

std::string Site::text() const {
  return file.empty() ? std::string() : fmt::format("{}:{}", file, line);
}

uint32_t site_number(std::string_view file, int line) {
  Sites& all = sites();
  const std::lock_guard lock(all.mutex);
  const auto [at, is_new] =
      all.numbers.try_emplace({std::string(file), line}, uint32_t(all.list.size()));
  if (is_new) all.list.push_back({std::string(file), line});
  return at->second;
}

Site site_of(uint32_t number) {
  Sites& all = sites();
  const std::lock_guard lock(all.mutex);
  return all.list.at(number);
}

uint32_t site_count() {
  Sites& all = sites();
  const std::lock_guard lock(all.mutex);
  return uint32_t(all.list.size());
}

void Origins::add(UOp n, uint32_t site) {
  if (site == 0) return;
  std::vector<uint32_t>& list = sites_[n.node()];
  const auto at = std::ranges::lower_bound(list, site);
  if (at == list.end() || *at != site) list.insert(at, site);
  key_ = mix(key_, site);
}

void Origins::add(UOp n, std::span<const uint32_t> sites) {
  for (const uint32_t site : sites) add(n, site);
}

void Origins::follow(UOp from, UOp to) {
  const auto at = sites_.find(from.node());
  if (at == sites_.end()) return;
  const std::vector<uint32_t> copy = at->second;  // the table may grow
  const Hash128 key = key_;
  add(to, copy);
  key_ = key;
}

std::span<const uint32_t> Origins::of(UOp n) const {
  const auto at = sites_.find(n.node());
  return at == sites_.end() ? std::span<const uint32_t>() : std::span(at->second);
}

OriginsScope::OriginsScope(Origins* origins) : outer_(std::exchange(of_thread, origins)) {
  if (origins != nullptr) detail::origins_in_use++;
}

OriginsScope::~OriginsScope() {
  if (of_thread != nullptr) detail::origins_in_use--;
  of_thread = outer_;
}

Origins* origins_of_thread() { return of_thread; }

}  // namespace weft
