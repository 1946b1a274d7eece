// Nodes get their numbers as graphs are met.
#include "rewrite/trace_graph.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "ir/argument_text.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "rewrite/rule.h"
#include "rewrite/rule_text.h"
#include "rewrite/trace.h"

namespace weft {
namespace {

using Json = nlohmann::json;

class Writer {
 public:
  explicit Writer(const TraceGraphOptions& options) : options_(options) {}

  Json write(const Trace& trace) {
    Json passes = Json::array();
    for (const TracePass& pass : trace.passes) passes.push_back(pass_json(pass));
    return {{"nodes", std::move(nodes_)}, {"rules", std::move(rules_)}, {"passes", passes}};
  }

 private:
  Json pass_json(const TracePass& pass) {
    Json out{{"name", pass.name},
             {"before", number_of(pass.before)},
             {"nanoseconds", pass.nanoseconds},
             {"step_count", pass.steps.size()},
             {"notes", pass.notes}};
    Json steps = Json::array();
    for (const TraceStep& step : pass.steps) {
      if (steps_++ >= options_.most_steps) break;
      Json before = number_of(step.before), after = number_of(step.after);
      if (before.is_null() || after.is_null()) break;
      steps.push_back({rule_number(*step.rule), std::move(before), std::move(after)});
    }
    Json decisions = Json::array();
    for (const Decision& d : pass.decisions) {
      Json numbers = Json::object();
      for (const auto& [name, value] : d.numbers) numbers[std::string(name)] = value;
      decisions.push_back({{"node", number_of(d.node)},
                           {"other", d.other ? number_of(d.other) : Json()},
                           {"what", d.what},
                           {"why", d.why},
                           {"numbers", std::move(numbers)}});
    }
    out["steps"] = std::move(steps);
    out["decisions"] = std::move(decisions);
    out["after"] = number_of(pass.after);
    return out;
  }

  // Null where there are too many.
  Json number_of(UOp root) {
    if (!root) return {};
    const auto known = numbers_.find(root.node());
    if (known != numbers_.end()) return known->second;
    std::vector<std::pair<UOp, size_t>> stack{{root, 0}};
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      if (next < n.src_count()) {
        const UOp source = n.src(next++);
        if (!numbers_.contains(source.node())) stack.emplace_back(source, 0);
        continue;
      }
      if (!numbers_.contains(n.node())) {
        if (nodes_.size() >= options_.most_nodes) return {};
        numbers_.emplace(n.node(), uint32_t(nodes_.size()));
        nodes_.push_back(node_json(n));
      }
      stack.pop_back();
    }
    return numbers_.at(root.node());
  }

  Json node_json(UOp n) const {
    Json sources = Json::array(), sites = Json::array();
    for (UOp s : n.srcs()) sources.push_back(numbers_.at(s.node()));
    if (options_.origins != nullptr) {
      for (const uint32_t site : options_.origins->of(n)) sites.push_back(site);
    }
    Json out{name_of(n.op()), n.dtype().name(), std::move(sources), argument_text(n)};
    if (!sites.empty()) out.push_back(std::move(sites));
    return out;
  }

  uint32_t rule_number(const Rule& rule) {
    const auto [at, is_new] = rule_numbers_.emplace(&rule, uint32_t(rules_.size()));
    if (is_new) {
      rules_.push_back({{"name", rule.name},
                        {"file", source_file_of(rule)},
                        {"line", rule.line},
                        {"text", rule.lhs.empty() ? std::string() : infix_of(rule)},
                        {"status", options_.status ? options_.status(rule) : ""}});
    }
    return at->second;
  }

  const TraceGraphOptions& options_;
  std::unordered_map<const Node*, uint32_t> numbers_;
  std::unordered_map<const Rule*, uint32_t> rule_numbers_;
  Json nodes_ = Json::array(), rules_ = Json::array();
  size_t steps_ = 0;
};

}  // namespace

nlohmann::json trace_graph(const Trace& trace, const TraceGraphOptions& options) {
  return Writer(options).write(trace);
}

}  // namespace weft
