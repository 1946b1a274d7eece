// One table for the process, under a lock that is taken once per rewrite of a graph.
#include "rewrite/statistics.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/config.h"
#include "rewrite/rule.h"

namespace weft {
namespace {

using Key = std::tuple<std::string, std::string, uint32_t>;  // name, file, line: rules may die

class Table {
 public:
  // At the end of a process that counted, its table goes to stderr.
  ~Table() {
    if (counts_.empty() || config().stats == 0) return;
    std::fputs(text_of(list()).c_str(), stderr);
  }
  void add(std::span<const Rule* const> rules, std::span<const RuleCount> counts) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < rules.size(); i++) {
      if (counts[i].tried == 0) continue;
      RuleCount& c = counts_[Key(rules[i]->name, rules[i]->file, rules[i]->line)];
      c.tried += counts[i].tried;
      c.fired += counts[i].fired;
      c.nanoseconds += counts[i].nanoseconds;
    }
  }
  std::vector<RuleStatistic> list() {
    const std::lock_guard lock(mutex_);
    std::vector<RuleStatistic> out;
    out.reserve(counts_.size());
    for (const auto& [key, count] : counts_) {
      out.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
    }
    std::stable_sort(out.begin(), out.end(), [](const RuleStatistic& a, const RuleStatistic& b) {
      return a.count.nanoseconds > b.count.nanoseconds;
    });
    return out;
  }
  void reset() {
    const std::lock_guard lock(mutex_);
    counts_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<Key, RuleCount> counts_;
};

Table& table() {
  config();  // made before the table, so that it outlives it
  static Table instance;
  return instance;
}

}  // namespace

void add_rule_counts(std::span<const Rule* const> rules, std::span<const RuleCount> counts) {
  table().add(rules, counts);
}
std::vector<RuleStatistic> rule_statistics() { return table().list(); }
void reset_rule_statistics() { table().reset(); }

std::string text_of(std::span<const RuleStatistic> statistics) {
  std::string out = fmt::format("{:>10} {:>10} {:>10}  {}\n", "tried", "fired", "ms", "rule");
  for (const RuleStatistic& s : statistics) {
    out += fmt::format("{:>10} {:>10} {:>10.3f}  {}  {}:{}\n", s.count.tried, s.count.fired,
                       double(s.count.nanoseconds) / 1e6, s.name, s.file, s.line);
  }
  return out;
}

}  // namespace weft
