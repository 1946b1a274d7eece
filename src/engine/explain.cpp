// Records of realises as JSON.
#include "engine/explain.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/print.h"
#include "rewrite/trace.h"
#include "runtime/debug.h"
#include "runtime/kernel_operations.h"
#include "schedule/schedule.h"
#include "value/import.h"

namespace weft {

namespace detail {
std::atomic<bool> is_explaining = false;
}

namespace {

using Json = nlohmann::json;

struct Runs {
  uint64_t runs = 0, nanoseconds = 0, bytes = 0, flops = 0;
};

struct Records {
  std::mutex mutex;
  std::vector<Json> schedules;
  std::vector<std::vector<Runs>> runs;  // of the calls of each
  // The notes of a schedule, which all its copies share, and which are held: a number is not taken
  // by another one.
  std::map<const void*, std::pair<size_t, std::shared_ptr<const ScheduleNotes>>> numbers;
};
Records& records() {
  static auto& instance = *new Records;
  return instance;
}

Json sites_json(std::span<const uint32_t> sites) {
  Json out = Json::array();
  for (const uint32_t number : sites) {
    const Site site = site_of(number);
    out.push_back({{"file", site.file}, {"line", site.line}});
  }
  return out;
}

// Of the node, or else of the nearest nodes that it is computed from.
Json sites_of_node(UOp root, const Origins& origins) {
  constexpr size_t most = 256;  // nodes looked at
  std::vector<UOp> todo{root};
  for (size_t i = 0; i < todo.size() && i < most; i++) {
    const std::span<const uint32_t> own = origins.of(todo[i]);
    if (!own.empty()) return sites_json(own);
    for (UOp s : todo[i].srcs()) {
      if (!s.dtype().is_index()) todo.push_back(s);
    }
  }
  return Json::array();
}

Json kernel_json(const KernelCall& call) {
  return {{"name", call.name},
          {"kernel", call.kernel},
          {"sites", sites_json(call.sites)},
          {"operations", kernel_operations(call.ast)},
          {"graph", print(call.ast)},
          {"buffers", call.arguments},
          {"written", call.written},
          {"waits_for", call.waits_for}};
}

Json decision_json(const TracePass& pass, const Decision& d, const Origins& origins) {
  Json numbers = Json::object();
  for (const auto& [name, value] : d.numbers) numbers[std::string(name)] = value;
  Json out{{"pass", pass.name},
           {"node", short_form(d.node, 120)},
           {"what", d.what},
           {"why", d.why},
           {"numbers", std::move(numbers)},
           {"sites", sites_of_node(d.node, origins)}};
  if (d.other) {
    out["other"] = short_form(d.other, 120);
    out["other_sites"] = sites_of_node(d.other, origins);
  }
  return out;
}

Json schedule_json(const ScheduleEvent& e) {
  static const Origins kNone;
  const Origins& origins = e.imported.origins ? *e.imported.origins : kNone;
  Json kernels = Json::array(), passes = Json::array(), decisions = Json::array(),
       copies = Json::array();
  for (const KernelCall& call : e.schedule.calls) kernels.push_back(kernel_json(call));
  for (const TracePass& pass : e.trace.passes) {
    passes.push_back({{"name", pass.name},
                      {"steps", pass.steps.size()},
                      {"nanoseconds", pass.nanoseconds},
                      {"changed", pass.before != pass.after},
                      {"after", print(pass.after)},
                      {"notes", pass.notes}});
    for (const Decision& d : pass.decisions) decisions.push_back(decision_json(pass, d, origins));
  }
  for (UOp n : e.imported.sink.srcs()) {
    if (!n.is(Op::AFTER) || !n.src(0).is(Op::CONTIGUOUS)) continue;
    copies.push_back({{"node", short_form(n.src(0).src(0), 120)},
                      {"why",
                       "its old content is still in use: a tensor, a view or a gradient "
                       "that was made before the write reads it"},
                      {"sites", sites_of_node(n, origins)}});
  }
  return {{"device", e.device},
          {"known", e.why_made.empty()},
          {"why_made", e.why_made},
          {"why_no_loops", e.schedule.why_no_loops},
          {"microseconds", double(e.nanoseconds) / 1e3},
          {"kernels", std::move(kernels)},
          {"passes", std::move(passes)},
          {"decisions", std::move(decisions)},
          {"copies", std::move(copies)}};
}

}  // namespace

void set_explaining(bool is_on) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  if (is_on) {
    all.schedules.clear();
    all.runs.clear();
    all.numbers.clear();
  }
  detail::is_explaining = is_on;
}

void explain_schedule(const ScheduleEvent& event) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  const void* const key = event.schedule.notes.get();
  if (all.numbers.contains(key)) return;
  all.numbers[key] = {all.schedules.size(), event.schedule.notes};
  all.schedules.push_back(schedule_json(event));
  all.runs.emplace_back(event.schedule.calls.size());
}

void show_schedule(UOp sink, const Schedule& schedule, bool is_new, uint64_t nanoseconds) {
  show(fmt::format("plan    {:8.2f} us  {} kernels: {}", double(nanoseconds) / 1e3,
                   schedule.calls.size(),
                   is_new ? "no schedule of this graph is known" : "a known schedule"));
  if (is_new && !schedule.why_no_loops.empty()) {
    show(fmt::format("loops   not a loop program: {}", schedule.why_no_loops));
  }
  for (UOp n : sink.srcs()) {
    if (!n.is(Op::AFTER) || !n.src(0).is(Op::CONTIGUOUS)) continue;
    show(fmt::format("copy    {} is written in a copy: its old content is still in use",
                     short_form(n.src(0).src(0))));
  }
}

void explain_run(const Schedule& schedule, size_t call, uint64_t nanoseconds, uint64_t bytes,
                 uint64_t flops) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  const auto at = all.numbers.find(schedule.notes.get());
  if (at == all.numbers.end()) return;
  Runs& runs = all.runs[at->second.first][call];
  runs.runs++;
  runs.nanoseconds += nanoseconds;
  runs.bytes += bytes;
  runs.flops += flops;
}

std::string explanations() {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  Json schedules = Json::array();
  for (size_t i = 0; i < all.schedules.size(); i++) {
    Json s = all.schedules[i];
    for (size_t k = 0; k < all.runs[i].size(); k++) {
      const Runs& r = all.runs[i][k];
      s["kernels"][k]["runs"] = r.runs;
      s["kernels"][k]["nanoseconds"] = r.nanoseconds;
      s["kernels"][k]["bytes"] = r.bytes;
      s["kernels"][k]["flops"] = r.flops;
    }
    schedules.push_back(std::move(s));
  }
  // A short form may be cut in the middle of a character.
  return Json{{"schedules", std::move(schedules)}}.dump(-1, ' ', false,
                                                        Json::error_handler_t::replace);
}

std::string text_of_sites(std::span<const uint32_t> sites, size_t most) {
  std::string out;
  for (size_t i = 0; i < sites.size() && i < most; i++) {
    const Site site = site_of(sites[i]);
    const size_t slash = site.file.rfind('/');
    const std::string name = slash == std::string::npos ? site.file : site.file.substr(slash + 1);
    out += (i == 0 ? "" : ", ") + name + ":" + std::to_string(site.line);
  }
  return sites.size() > most ? out + ", ..." : out;
}

}  // namespace weft
