// A table of schedules, by address and by who lives there.
#include "engine/schedule_flops.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/kernel_flops.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

using Flops = std::shared_ptr<const std::vector<uint64_t>>;

std::vector<uint64_t> count(const Schedule& schedule) {
  std::unordered_map<uint32_t, uint64_t> by_kernel;
  std::vector<uint64_t> flops;
  for (const KernelCall& call : schedule.calls) {
    const auto [at, is_new] = by_kernel.emplace(call.kernel, 0);
    if (is_new) at->second = kernel_flops(call.ast);
    flops.push_back(at->second);
  }
  return flops;
}

struct Entry {
  std::weak_ptr<const Schedule> schedule;  // another one may come to live at its address
  Flops flops;
};

}  // namespace

Flops flops_of(const std::shared_ptr<const Schedule>& schedule) {
  static std::unordered_map<const Schedule*, Entry> entries;
  static size_t most_entries = 64;
  const auto at = entries.find(schedule.get());
  if (at != entries.end() && !at->second.schedule.expired()) return at->second.flops;
  auto flops = std::make_shared<const std::vector<uint64_t>>(count(*schedule));
  if (entries.size() >= most_entries) {
    std::erase_if(entries, [](const auto& entry) { return entry.second.schedule.expired(); });
    most_entries = std::max<size_t>(64, 2 * entries.size());
  }
  entries[schedule.get()] = {schedule, flops};
  return flops;
}

}  // namespace weft
