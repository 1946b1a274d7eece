// Which passes of users compile, and their runs.
#include "rewrite/user_passes.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/hash.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "rewrite/rule.h"
#include "rewrite/statistics.h"
#include "rewrite/trace.h"

namespace weft {
namespace {

using Shared = std::shared_ptr<const UserPasses>;

std::mutex process_mutex;
Shared& process_passes() {  // for ever: what it holds may be of a language that has ended
  static auto& passes = *new Shared;
  return passes;
}
// While it is 0, nobody looks further.
std::atomic<int> lists_in_use = 0;

struct OfThread {
  Shared passes;
  bool is_own = false;
  bool is_running = false;
};
thread_local OfThread of_thread;

Hash128 new_key() {
  static std::atomic<uint64_t> count = 0;
  static const uint64_t kProcess = std::random_device{}() | uint64_t(std::random_device{}()) << 32;
  return mix(mix(Hash128{}, kProcess), ++count);
}

class Running {
 public:
  Running() : outer_(std::exchange(of_thread.is_running, true)) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { of_thread.is_running = outer_; }

 private:
  bool outer_;
};

UOp run_one(const UserPass& pass, UOp graph, Stage stage, Trace* trace) {
  const bool is_counted = config().stats > 0;
  const uint64_t start = is_counted || trace != nullptr ? now_ns() : 0;
  const bool was_legal = !find_violation(graph, stage);
  Trace inner;
  UOp after = [&] {
    const Running running;
    return pass.run(graph, stage, trace != nullptr ? &inner : nullptr);
  }();
  if (&after.arena() != &graph.arena()) after = import_graph(graph.arena(), after);
  if (was_legal) verify(after, stage, pass.name);
  if (is_counted) {
    const Rule* const rule = &pass.rule;
    const RuleCount count{1, after == graph ? 0U : 1U, now_ns() - start};
    add_rule_counts({&rule, 1}, {&count, 1});
  }
  if (trace != nullptr) {
    TracePass entry{pass.name, graph, after, now_ns() - start, {}};
    for (const TracePass& p : inner.passes) {
      entry.steps.insert(entry.steps.end(), p.steps.begin(), p.steps.end());
    }
    trace->owners.insert(trace->owners.end(), inner.owners.begin(), inner.owners.end());
    trace->passes.push_back(std::move(entry));
  }
  return after;
}

}  // namespace

UserPasses::UserPasses(std::vector<UserPass> passes) : list(std::move(passes)), key(new_key()) {
  for (UserPass& pass : list) pass.rule.name = pass.name;
}

Shared user_passes() {
  if (lists_in_use.load(std::memory_order_relaxed) == 0) return nullptr;
  if (of_thread.is_own) return of_thread.passes;
  const std::lock_guard lock(process_mutex);
  return process_passes();
}

void set_user_passes(Shared passes) {
  if (passes && passes->list.empty()) passes = nullptr;
  Shared old;
  const std::lock_guard lock(process_mutex);
  lists_in_use += (passes ? 1 : 0) - (process_passes() ? 1 : 0);
  old = std::exchange(process_passes(), std::move(passes));
}

UserPassesScope::UserPassesScope(Shared passes)
    : outer_(std::exchange(of_thread.passes, std::move(passes))),
      had_own_(std::exchange(of_thread.is_own, true)) {
  lists_in_use++;
}

UserPassesScope::~UserPassesScope() {
  lists_in_use--;
  of_thread.passes = std::move(outer_);
  of_thread.is_own = had_own_;
}

Hash128 mix_user_passes(Hash128 hash) {
  const Shared passes = user_passes();
  return passes ? mix(mix(hash, passes->key.low), passes->key.high) : hash;
}

bool is_in_user_pass() { return of_thread.is_running; }

UOp run_user_passes(UOp graph, std::string_view beside, UserPass::Where where, Stage stage,
                    Trace* trace) {
  const Shared passes = user_passes();
  if (!passes) return graph;
  for (const UserPass& pass : passes->list) {
    if (pass.where == where && pass.beside == beside) graph = run_one(pass, graph, stage, trace);
  }
  return graph;
}

}  // namespace weft
