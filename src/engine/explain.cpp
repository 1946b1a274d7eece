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
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "engine/explain_memory.h"
#include "engine/prepare_schedule.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/print.h"
#include "rewrite/rule.h"
#include "rewrite/trace.h"
#include "rewrite/trace_graph.h"
#include "runtime/debug.h"
#include "runtime/kernel_operations.h"
#include "runtime/program.h"
#include "schedule/machine.h"
#include "schedule/schedule.h"
#include "symbolic/simplify.h"
#include "value/history.h"
#include "value/import.h"

namespace weft {

namespace detail {
std::atomic<bool> is_explaining = false;
}

namespace {

using Json = nlohmann::json;

// Of one call of a schedule.
struct Runs {
  uint64_t runs = 0, nanoseconds = 0, bytes = 0, flops = 0;
  double least_nanoseconds = 0;
};

constexpr size_t kMostRuns = 50'000;  // in the timeline; all are counted

struct Records {
  std::mutex mutex;
  uint64_t begin = 0;
  std::vector<Json> schedules;
  std::vector<std::vector<Runs>> runs;  // of the calls of each
  Json timeline = Json::array(), compilations = Json::array();
  // Which calls a program has run, and which of them is the next one where it is called again.
  struct Calls {
    std::vector<std::pair<size_t, size_t>> calls;
    size_t next = 0;
  };
  std::map<const Program*, Calls> programs;
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
    out.push_back({{"number", number}, {"file", site.file}, {"line", site.line}});
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

Json buffer_json(const ScheduledBuffer& b) {
  constexpr const char* kinds[] = {"input", "output", "temporary", "table"};
  return {{"kind", kinds[size_t(b.kind)]},
          {"size", b.size},
          {"dtype", b.dtype.name()},
          {"slot", b.slot}};
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
  Json kernels = Json::array(), buffers = Json::array(), decisions = Json::array(),
       copies = Json::array();
  for (const KernelCall& call : e.schedule.calls) kernels.push_back(kernel_json(call));
  for (const ScheduledBuffer& buffer : e.schedule.buffers) buffers.push_back(buffer_json(buffer));
  for (const TracePass& pass : e.trace.passes) {
    for (size_t i = 0; i < pass.decisions.size(); i++) {
      decisions.push_back(decision_json(pass, pass.decisions[i], origins));
      decisions.back()["index"] = i;
    }
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
          {"begin", e.begin},
          {"microseconds", double(e.nanoseconds) / 1e3},
          {"graph", print(e.imported.sink)},
          {"kernels", std::move(kernels)},
          {"buffers", std::move(buffers)},
          {"trace", trace_graph(e.trace, {.origins = &origins, .status = status_of_rule})},
          {"decisions", std::move(decisions)},
          {"copies", std::move(copies)}};
}

}  // namespace

std::string_view status_of_rule(const Rule& rule) {
  static const auto& known = *[] {
    auto* const made = new std::map<std::pair<std::string_view, uint32_t>, std::string_view>;
    for (const RuleTable& table : symbolic_tables()) {
      for (const Rule& r : table.rules) {
        (*made)[{r.name, r.line}] = r.is_declarative() ? "proved by Z3" : "property-tested";
      }
    }
    return made;
  }();
  const auto at = known.find({rule.name, rule.line});
  if (at != known.end()) return at->second;
  return std::string_view(rule.file).ends_with(".py") ? "yours" : "tested";
}

void set_explaining(bool is_on) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  if (is_on) {
    all.schedules.clear();
    all.runs.clear();
    all.numbers.clear();
    all.programs.clear();
    all.timeline = Json::array();
    all.compilations = Json::array();
    all.begin = now_ns();
  }
  keep_history(is_on);
  keep_memory_events(is_on);
  detail::is_explaining = is_on;
}

void explain_schedule(const ScheduleEvent& event) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  const void* const key = event.schedule.notes.get();
  if (all.numbers.contains(key)) return;
  all.numbers[key] = {all.schedules.size(), event.schedule.notes};
  all.schedules.push_back(schedule_json(event));
  all.schedules.back()["begin"] = event.begin - all.begin;
  all.runs.emplace_back(event.schedule.calls.size());
}

void explain_programs(const Schedule& schedule, const PreparedSchedule& prepared, uint64_t begin) {
  const uint64_t nanoseconds = now_ns() - begin;
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  const auto at = all.numbers.find(schedule.notes.get());
  if (at == all.numbers.end()) return;
  const size_t number = at->second.first;
  all.compilations.push_back({number, begin - all.begin, nanoseconds});
  for (size_t i = 0; i < schedule.calls.size(); i++) {
    auto& calls = all.programs[prepared.kernels[schedule.calls[i].kernel].program.get()].calls;
    if (calls.empty() || calls.back().first != number || calls.back().second < i) {
      if (!calls.empty() && calls.back().first != number) calls.clear();
      calls.emplace_back(number, i);
    }
  }
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

namespace {

void add_run(Records& all, size_t schedule, size_t call, const RunEvent& event) {
  Runs& runs = all.runs[schedule][call];
  runs.runs++;
  runs.nanoseconds += event.nanoseconds;
  runs.bytes += event.bytes;
  runs.flops += event.flops;
  runs.least_nanoseconds += event.least_nanoseconds;
  if (all.timeline.size() < kMostRuns) {
    all.timeline.push_back({schedule, call, event.begin - all.begin, event.nanoseconds});
  }
}

}  // namespace

void explain_run(const Schedule& schedule, size_t call, const RunEvent& event) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  const auto at = all.numbers.find(schedule.notes.get());
  if (at != all.numbers.end()) add_run(all, at->second.first, call, event);
}

void explain_run(const Program& program, std::string_view name, std::string_view operations,
                 const RunEvent& event) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  Records::Calls& known = all.programs[&program];
  if (known.calls.empty()) {  // of no schedule
    known.calls.emplace_back(all.schedules.size(), 0);
    Json kernel{{"name", name},
                {"kernel", 0},
                {"sites", Json::array()},
                {"operations", operations},
                {"graph", ""},
                {"buffers", Json::array()},
                {"written", 0},
                {"waits_for", Json::array()}};
    all.schedules.push_back({{"device", ""},
                             {"known", true},
                             {"why_made", ""},
                             {"why_no_loops", ""},
                             {"begin", event.begin - all.begin},
                             {"microseconds", 0},
                             {"graph", ""},
                             {"kernels", Json::array({std::move(kernel)})},
                             {"buffers", Json::array()},
                             {"trace", trace_graph(Trace{})},
                             {"decisions", Json::array()},
                             {"copies", Json::array()}});
    all.runs.emplace_back(1);
  }
  const auto [schedule, call] = known.calls[known.next++ % known.calls.size()];
  add_run(all, schedule, call, event);
}

double least_nanoseconds(const Machine& machine, uint64_t bytes, uint64_t flops) {
  constexpr double many = 1e12;
  return bound({.operations = double(flops),
                .bytes = double(bytes),
                .among = double(bytes),
                .parallel = many},
               machine);
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
      s["kernels"][k]["least_nanoseconds"] = r.least_nanoseconds;
    }
    schedules.push_back(std::move(s));
  }
  Json sites = Json::array();
  for (uint32_t i = 0; i < site_count(); i++) {
    const Site site = site_of(i);
    sites.push_back({site.file, site.line});
  }
  // A short form may be cut in the middle of a character.
  return Json{{"nanoseconds", now_ns() - all.begin},
              {"sites", std::move(sites)},
              {"schedules", std::move(schedules)},
              {"compilations", all.compilations},
              {"runs", all.timeline},
              {"memory", memory_events_json(all.begin)},
              {"storages", storage_events_json(all.begin)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
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
