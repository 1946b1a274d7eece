// Traces as text and JSON.
#include "rewrite/trace.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ir/print.h"
#include "rewrite/rule.h"

namespace weft {

std::string Trace::text() const {
  std::string out;
  for (const TracePass& pass : passes) {
    out += fmt::format("pass {}: {} steps\n", pass.name, pass.steps.size());
    for (const TraceStep& s : pass.steps) {
      out += fmt::format("  {:<24} {} -> {}\n", s.rule->name, short_form(s.before, 80),
                         short_form(s.after, 80));
    }
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
    root["passes"].push_back({{"name", pass.name},
                              {"before", print(pass.before)},
                              {"after", print(pass.after)},
                              {"nanoseconds", pass.nanoseconds},
                              {"steps", std::move(steps)}});
  }
  // a short form may be cut in the middle of a character
  return root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace weft
