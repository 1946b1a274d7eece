// How often each rule was tried, how often it applied, and how long it took.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct Rule;

struct RuleCount {
  uint64_t tried = 0;
  uint64_t fired = 0;
  uint64_t nanoseconds = 0;
};

struct RuleStatistic {
  std::string name, file;
  uint32_t line = 0;
  RuleCount count;
};

// Counts of this process since the start or the last reset, the slowest rule first. They grow while
// config().stats is 1 or more; with 2 every match is printed to stderr as it happens.
std::vector<RuleStatistic> rule_statistics();
void reset_rule_statistics();
std::string text_of(std::span<const RuleStatistic> statistics);

// What one rewrite counted; safe from any thread.
void add_rule_counts(std::span<const Rule* const> rules, std::span<const RuleCount> counts);

}  // namespace weft
