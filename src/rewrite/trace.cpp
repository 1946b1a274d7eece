// Traces as text and JSON.
#include "rewrite/trace.h"

#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ir/print.h"
#include "rewrite/rule.h"

namespace weft {

std::string Decision::text() const {
  std::string out = short_form(node, 80);
  if (other) out += fmt::format(" and {}", short_form(other, 80));
  out += fmt::format(": {}, because {}", what, why);
  for (size_t i = 0; i < numbers.size(); i++) {
    out += fmt::format("{}{} {:.6g}", i == 0 ? " (" : ", ", numbers[i].first, numbers[i].second);
  }
  return numbers.empty() ? out : out + ")";
}

std::string Trace::text() const {
  std::string out;
  for (const TracePass& pass : passes) {
    out += fmt::format("pass {}: {} steps\n", pass.name, pass.steps.size());
    for (const TraceStep& s : pass.steps) {
      out += fmt::format("  {:<24} {} -> {}\n", s.rule->name, short_form(s.before, 80),
                         short_form(s.after, 80));
    }
    for (const Decision& d : pass.decisions) out += fmt::format("  {}\n", d.text());
    out += pass.notes;
  }
  return out;
}

std::string Trace::json() const {
  nlohmann::json root;
  root["passes"] = nlohmann::json::array();
  for (const TracePass& pass : passes) {
    nlohmann::json steps = nlohmann::json::array();
    for (const TraceStep& s : pass.steps) {
      steps.push_back({{"rule", s.rule->name},
                       {"file", s.rule->file},
                       {"line", s.rule->line},
                       {"before", short_form(s.before)},
                       {"after", short_form(s.after)}});
    }
    nlohmann::json decisions = nlohmann::json::array();
    for (const Decision& d : pass.decisions) {
      nlohmann::json numbers = nlohmann::json::object();
      for (const auto& [name, value] : d.numbers) numbers[std::string(name)] = value;
      decisions.push_back({{"node", short_form(d.node)},
                           {"what", d.what},
                           {"why", d.why},
                           {"other", d.other ? short_form(d.other) : ""},
                           {"numbers", std::move(numbers)}});
    }
    root["passes"].push_back({{"name", pass.name},
                              {"before", print(pass.before)},
                              {"after", print(pass.after)},
                              {"nanoseconds", pass.nanoseconds},
                              {"steps", std::move(steps)},
                              {"decisions", std::move(decisions)},
                              {"notes", pass.notes}});
  }
  // a short form may be cut in the middle of a character
  return root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace weft
