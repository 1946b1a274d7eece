// Store or compute again, from users to sources: when a value's turn comes, all of its uses are
// known as they will be, because what uses it has been decided.
#include "schedule/rangeify/inline_buffers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/reads.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "rewrite/trace.h"
#include "schedule/machine.h"
#include "schedule/rangeify/buffer_cost.h"
#include "schedule/rangeify/fit_buffers.h"
#include "schedule/rangeify/levels.h"
#include "schedule/rangeify/loop_order.h"
#include "schedule/rangeify/stored_values.h"
#include "schedule/rangeify/substitute_ranges.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

// A use of a stored value: by value `user`, which is stored itself.
struct Use {
  uint32_t user;
  UOp read;
  auto operator<=>(const Use& o) const {
    return std::pair(read.id(), user) <=> std::pair(o.read.id(), o.user);
  }
  bool operator==(const Use&) const = default;
};

struct State {
  std::vector<Use> uses;
  bool is_stored = false;
  size_t statements = 0, own_statements = 0;  // of its kernel so far; counting every value once
  size_t reductions = 0;
  std::vector<UOp> inputs;
  uint32_t last_inlined = 0;  // 1 + the value put into it last
  // Of reductions that run in some of its loops: these loops. Of any two, one has all of the other.
  std::vector<RangeSet> around;
  KernelWork work;
};

constexpr double kClearly = 0.95;  // of a time: estimates that differ by less are the same
constexpr double kNearLines = 4;   // that are read side by side

class Inliner {
 public:
  Inliner(UOp sink, const KernelLimits& limits, std::vector<Decision>* decisions)
      : decisions_(decisions),
        sink_(sink),
        arena_(sink.arena()),
        limits_(limits),
        values_(stored_values(sink)),
        levels_(find_levels(values_, arena_, limits)),
        states_(values_.size()),
        is_joined_(values_.size()),
        numbers_(arena_),
        inlined_(arena_),
        around_(arena_),
        rebuilt_(arena_) {
    for (size_t i = 0; i < values_.size(); i++) {
      numbers_.put_number(values_[i].node, i + 1);
      for (const uint32_t other : levels_.together[i]) is_joined_[i] = is_joined_[other] = true;
    }
  }

  UOp run() {
    for (size_t i = values_.size(); i-- > 0;) decide(uint32_t(i));
    for (size_t i = 0; i < values_.size(); i++) {
      if (states_[i].is_stored) rebuild(uint32_t(i));
    }
    std::vector<UOp> srcs;
    for (UOp s : sink_.srcs()) srcs.push_back(rebuilt_memory(s));
    const UOp result = arena_.with_srcs(sink_, srcs);
    const size_t most = limits_.buffers - 1;  // one is written
    return most_inputs() <= most ? result : fit_buffers(result, most);
  }

 private:
  void decide(uint32_t i) {
    const StoredValue& v = values_[i];
    State& s = states_[i];
    std::sort(s.uses.begin(), s.uses.end());
    s.uses.erase(std::unique(s.uses.begin(), s.uses.end()), s.uses.end());
    const Work work = work_of(v);
    const double size = places(v.ranges()), bytes = v.value().dtype().item_bytes();
    s.is_stored = v.must_store;
    if (!s.is_stored && !s.uses.empty()) {
      const Verdict verdict = weigh(i, work);
      s.is_stored = verdict.is_stored;
      if (decisions_ != nullptr) note(v, verdict);
    }
    if (s.is_stored) {
      s.work = KernelWork::of(work, size, bytes);
      explore(i, v.roots());
      return;
    }
    put_work(i, work);
    for (size_t k = 0; k < s.uses.size(); k++) {
      const Use use = s.uses[k];
      if (k == 0 || use.read != s.uses[k - 1].read) {
        inlined_.put(use.read, substitute_ranges(v.value(), v.ranges(), at(use.read)));
      }
      State& user = states_[use.user];
      if (std::exchange(user.last_inlined, i + 1) != i + 1) user.own_statements += work.statements;
      const bool is_shared =
          std::ranges::any_of(s.uses, [&](const Use& other) { return other.user != use.user; });
      if (work.has_reduction && is_shared) is_joined_[use.user] = true;
      const UOp roots[] = {inlined_.get(use.read)};
      explore(use.user, roots);
    }
  }

  static std::span<const UOp> at(UOp read) { return read.srcs().subspan(1); }

  // Notes what the kernel of `user` computes and reads in these expressions.
  void explore(uint32_t user, std::span<const UOp> roots) {
    State& s = states_[user];
    size_t statements = 0;
    visit_computation(roots, [&](UOp n) {
      if (n.is(Op::REDUCE)) {
        note_loops_around(n, user);
        s.reductions++;
      }
      if (!is_read(n)) {
        statements++;
        return;
      }
      if (!has_range(s.inputs, n.src(0)) && s.inputs.size() <= limits_.buffers) {
        s.inputs.push_back(n.src(0));
      }
      const uint64_t number = numbers_.number(n.src(0));
      if (number == 0) return;
      const uint32_t source = uint32_t(number - 1);
      if (values_[source].must_store && is_together(user, source) &&
          reads_own_place(n, values_[source].node)) {
        return;
      }
      states_[source].uses.push_back({user, n});
    });
    if (s.statements == 0) s.own_statements += statements;
    s.statements += statements;
  }

  bool is_together(uint32_t user, uint32_t source) const {
    const std::vector<uint32_t>& with = levels_.together[user];
    return std::find(with.begin(), with.end(), source) != with.end();
  }

  // The loops in which a reduction runs, for every range that it runs over.
  void note_loops_around(UOp reduce, uint32_t user) {
    const std::span<const UOp> around = ranges_of(reduce);
    for (UOp r : reduce.srcs().subspan(1)) {
      const UOp known = around_.get(r);
      if (!known || places(ranges_of(known)) < places(around)) around_.put(r, reduce);
    }
    const std::vector<UOp> loops = loops_of(values_[user].ranges());
    if (!is_subset(around, loops) || around.size() == loops.size()) return;
    std::vector<RangeSet>& all = states_[user].around;
    RangeSet set(around.begin(), around.end());
    if (std::ranges::find(all, set) == all.end()) all.push_back(std::move(set));
  }

  // How often a use computes the value, if it is put there: once in each iteration of the loops
  // around it, down to the last one that its indices depend on.
  double evaluations(const Use& use, const Work& work) const {
    RangeSet used = ranges_of_indices(use.read);
    UOp innermost;  // of the reductions that it stands in
    for (UOp r : used) {
      const UOp reduce = around_.get(r);
      if (reduce && (!innermost || ranges_of(reduce).size() > ranges_of(innermost).size()))
        innermost = reduce;
    }
    const auto add = [&](std::span<const UOp> loops) {
      for (UOp r : loops) {
        if (!has_range(used, r)) used.push_back(r);
      }
    };
    if (innermost) {
      add(up_to_last(innermost.srcs().subspan(1), RangeSet(used)));
      add(ranges_of(innermost));
    } else if (!work.has_reduction || !can_be_outer(use.user, used)) {
      const std::vector<UOp> loops = loops_of(values_[use.user].ranges());
      add(up_to_last(order_loops(loops, states_[use.user].around), RangeSet(used)));
    }
    return places(used);
  }

  // Whether some of the loops of a value can be its outer ones, as those around its reductions are.
  bool can_be_outer(uint32_t user, std::span<const UOp> some) const {
    const std::vector<UOp> loops = loops_of(values_[user].ranges());
    std::vector<RangeSet> sets = states_[user].around;
    sets.emplace_back(some.begin(), some.end());
    const std::vector<UOp> order =
        may_reorder(user) ? order_loops(loops, sets) : std::vector<UOp>(loops);
    return std::ranges::all_of(
        sets, [&](const RangeSet& set) { return up_to_last(order, set).size() == set.size(); });
  }

  // Not the loops of a write, which may need their order, nor those that several values share.
  bool may_reorder(uint32_t user) const { return !values_[user].is_write && !is_joined_[user]; }

  static std::vector<UOp> ranges_of_indices(UOp read) {
    std::vector<UOp> out;
    for (UOp i : at(read)) {
      for (UOp r : ranges_of(i)) {
        if (!has_range(out, r)) out.push_back(r);
      }
    }
    return out;
  }

  // Whether a value is stored, and what decided that.
  struct Verdict {
    bool is_stored;
    std::string_view why;
    std::vector<std::pair<std::string_view, double>> numbers{};
  };

  void note(const StoredValue& v, const Verdict& verdict) {
    decisions_->push_back(
        {v.node, {}, verdict.is_stored ? "stored" : "recomputed", verdict.why, verdict.numbers});
  }

  Verdict weigh(uint32_t i, const Work& work) const {
    const StoredValue& v = values_[i];
    const State& s = states_[i];
    if (work.statements == 0) return {false, "it is a constant, or memory by another name"};
    if (s.uses.size() > cost::kMostUses) return {true, "it has too many uses"};
    const double size = places(v.ranges());
    double evaluated = 0;
    for (size_t k = 0; k < s.uses.size(); k++) {
      const Use& use = s.uses[k];
      if (would_outgrow(use.user, i, work)) return {true, "the kernel of a user would outgrow"};
      const bool is_hoisted = runs_outside(use);
      if (!shares_kernel_with_earlier(i, k, work)) evaluated += evaluations(use, work);
      if (work.has_contraction && (is_hoisted || !may_nest(i, use))) {
        return {true, "a contraction is faster alone"};
      }
      if (work.has_reduction && is_hoisted && !stays_near(use, work)) {
        return {true, "what it reduces would be read from far away again"};
      }
    }
    if (work.has_reduction && evaluated > size) {
      return {true, "a reduction is computed once", {{"evaluations", evaluated}, {"size", size}}};
    }
    if (work.has_reduction && is_gathered(s)) {
      return {true, "a reduction that is read at computed indices"};
    }
    const Users together = users_with(i, work);
    // Less than a launch's worth is not worth a kernel.
    const double small = limits_.machine.launch_ns * limits_.machine.operations_per_ns;
    const double most = cost::kMostWork * together.apart + small;
    if (together.work > most) {
      return {true,
              "its users would do more than their share of work",
              {{"work", together.work}, {"most work", most}}};
    }
    const double item_bytes = v.value().dtype().item_bytes();
    const double alone = bound(KernelWork::of(work, size, item_bytes).demand, limits_.machine) +
                         limits_.machine.launch_ns;
    const double stored = together.before_ns + alone;
    const bool is_stored = stored < kClearly * together.after_ns;
    return {is_stored,
            is_stored ? "that takes less time" : "to store it would not take clearly less time",
            {{"ns stored", stored}, {"ns recomputed", together.after_ns}}};
  }

  // The kernels that use value i, as they are and with it.
  struct Users {
    double before_ns = 0, after_ns = 0;
    double work = 0, apart = 0;
    std::vector<std::pair<uint32_t, KernelWork>> with;
  };
  Users users_with(uint32_t i, const Work& work) const {
    const StoredValue& v = values_[i];
    const std::vector<Use>& uses = states_[i].uses;
    Users out;
    out.apart = places(v.ranges()) * work.apart;
    for (size_t k = 0; k < uses.size(); k++) {
      const Use& use = uses[k];
      const double times = shares_kernel_with_earlier(i, k, work) ? 0 : evaluations(use, work);
      auto at = std::ranges::find(out.with, use.user, &std::pair<uint32_t, KernelWork>::first);
      if (at == out.with.end()) {
        at = out.with.insert(at, {use.user, states_[use.user].work});
        out.before_ns += bound(at->second.demand, limits_.machine);
        out.apart += at->second.apart;
      }
      KernelWork& now = at->second;
      now = now.with(work, times, v.node);
      if (work.has_reduction && runs_outside(use)) {
        now.demand.parallel = std::min(now.demand.parallel, parallel_around(use));
      }
    }
    for (const auto& [user, now] : out.with) {
      out.after_ns += bound(now.demand, limits_.machine);
      out.work += now.work;
    }
    return out;
  }

  // What the values are as kernels of their own is shared out, so that none of their users does
  // more than its share.
  void put_work(uint32_t i, const Work& work) {
    Users users = users_with(i, work);
    for (auto& [user, now] : users.with) {
      now.apart = users.apart * (now.work / users.work);
      states_[user].work = now;
    }
  }

  // Iterations that run side by side around a reduction: with threads that share it, if what it
  // reads lies along it.
  double parallel_around(const Use& use) const {
    const std::vector<UOp> used = ranges_of_indices(use.read);
    return places(used) * (is_in_order(use) ? limits_.machine.together : 1);
  }

  // The loops that the read depends on are the outer ones as they are.
  bool is_in_order(const Use& use) const {
    const std::vector<UOp> used = ranges_of_indices(use.read);
    return up_to_last(loops_of(values_[use.user].ranges()), used).size() == used.size();
  }

  // What is read again after the reduction has been read line by line is still in the cache.
  bool stays_near(const Use& use, const Work& work) const {
    if (is_in_order(use)) return true;
    const std::vector<UOp> used = ranges_of_indices(use.read);
    double bytes = kNearLines * limits_.machine.line * double(work.reads);
    for (UOp r : loops_of(values_[use.user].ranges())) {
      if (!has_range(used, r)) bytes *= places({&r, 1});
    }
    return bytes <= limits_.machine.own_cache().bytes / 2;
  }

  // Read at places that are known only when it runs: one element may be asked for many times.
  static bool is_gathered(const State& s) {
    return std::ranges::any_of(
        s.uses, [](const Use& u) { return std::ranges::any_of(at(u.read), reads_memory); });
  }

  // Outside of reductions, or in a nest of loops that is worth as much as two kernels.
  bool may_nest(uint32_t i, const Use& use) const {
    double longest = 0, parallel = 1;
    for (UOp r : ranges_of_indices(use.read)) {
      const double size = places({&r, 1});
      if (around_.get(r)) {
        longest = std::max(longest, size);
      } else {
        parallel *= size;
      }
    }
    if (longest == 0) return true;
    return states_[i].uses.size() == 1 && longest < cost::kVectorPlaces &&
           parallel >= std::max(cost::kLeastParallelNested, double(limits_.pieces));
  }

  // The same element, used by two values that will share a kernel, is computed once.
  bool shares_kernel_with_earlier(uint32_t i, size_t k, const Work& work) const {
    const std::vector<Use>& uses = states_[i].uses;
    const bool is_any = !work.has_reduction;
    if (!is_any && runs_outside(uses[k]) && !is_in_order(uses[k])) return false;
    for (size_t e = k; e > 0 && uses[e - 1].read == uses[k].read; e--) {
      const uint32_t a = uses[e - 1].user, b = uses[k].user;
      // Levels are of values that must be stored: others may wait for each other.
      const bool is_level = values_[a].must_store && values_[b].must_store;
      if (!is_level || levels_.of[a] != levels_.of[b]) continue;
      if (!has_same_loops(values_[a], values_[b])) continue;
      // Kernels with reductions and without share no loops but those of a reduction.
      const bool is_alike = (states_[a].reductions == 0) == (states_[b].reductions == 0);
      if (is_any ? is_alike : has_own_order(a) && has_own_order(b)) return true;
    }
    return false;
  }

  bool has_own_order(uint32_t user) const {
    const std::vector<UOp> loops = loops_of(values_[user].ranges());
    return order_loops(loops, states_[user].around) == loops;
  }

  // It does not depend on all loops of its user, and stands in no reduction.
  bool runs_outside(const Use& use) const {
    const std::vector<UOp> used = ranges_of_indices(use.read);
    return used.size() < loops_of(values_[use.user].ranges()).size() &&
           std::ranges::none_of(used, [&](UOp r) { return around_.has(r); });
  }

  bool would_outgrow(uint32_t user, uint32_t i, const Work& work) const {
    const State& s = states_[user];
    const std::vector<Use>& uses = states_[i].uses;
    const size_t count = size_t(
        std::count_if(uses.begin(), uses.end(), [&](const Use& u) { return u.user == user; }));
    const size_t grown = s.statements + count * work.statements;
    if (grown > 2 * limits_.statements) return true;
    if (s.inputs.size() + work.reads > limits_.buffers) return true;
    if (work.has_reduction && s.reductions + work.reductions > limits_.accumulators) return true;
    return grown > cost::kFreeGrowth &&
           grown > cost::kMostGrowth * (s.own_statements + work.statements);
  }

  // That one value reads: at most, as memory counts that was put into its users later.
  size_t most_inputs() const {
    size_t most = 0;
    for (size_t i = 0; i < values_.size(); i++) {
      size_t inputs = states_[i].inputs.size();
      for (const uint32_t other : levels_.together[i]) inputs += states_[other].inputs.size();
      most = std::max(most, inputs);
    }
    return most;
  }

  // ---- the new graph

  void rebuild(uint32_t i) {
    const StoredValue& v = values_[i];
    NodeMap done(arena_);
    UOp result;
    if (v.is_write) {
      const UOp store = v.store();
      std::vector<UOp> srcs(store.srcs().begin(), store.srcs().end());
      std::vector<UOp> target(srcs[0].srcs().begin(), srcs[0].srcs().end());
      target[0] = rebuilt_memory(target[0]);
      for (size_t k = 1; k < target.size(); k++) target[k] = rebuilt_value(target[k], i, done);
      srcs[0] = arena_.with_srcs(srcs[0], target);
      for (size_t k = 1; k < srcs.size(); k++) srcs[k] = rebuilt_value(srcs[k], i, done);
      result = arena_.with_srcs(store, srcs);
      if (v.node.is(Op::END)) result = with_first(v.node, result);
    } else {
      const UOp value = rebuilt_value(v.value(), i, done);
      result = with_first(v.node, arena_.make(Op::CONTIGUOUS, value.dtype(), {value}));
    }
    rebuilt_.put(v.node, followed(v.node, result));
  }

  UOp with_first(UOp n, UOp first) {
    std::vector<UOp> srcs(n.srcs().begin(), n.srcs().end());
    srcs[0] = first;
    return arena_.with_srcs(n, srcs);
  }

  // Memory, with what it comes AFTER.
  UOp rebuilt_memory(UOp n) {
    std::vector<UOp> path;
    while (n.is(Op::AFTER) && !rebuilt_.has(n)) {
      path.push_back(n);
      n = n.src(0);
    }
    UOp result = rebuilt_.has(n) ? rebuilt_.get(n) : n;
    for (size_t i = path.size(); i-- > 0;) {
      std::vector<UOp> srcs{result};
      for (UOp effect : path[i].srcs().subspan(1)) srcs.push_back(rebuilt_.get(effect));
      result = arena_.with_srcs(path[i], srcs);
      rebuilt_.put(path[i], result);
    }
    return result;
  }

  // What stands in place of a read in the kernel of `user`: null if it stays a read.
  UOp replacement(UOp n, uint32_t user) const {
    if (!is_read(n)) return {};
    if (UOp expression = inlined_.get(n)) return expression;
    const uint64_t number = numbers_.number(n.src(0));
    if (number == 0 || !is_together(user, uint32_t(number - 1))) return {};
    const StoredValue& source = values_[number - 1];
    return reads_own_place(n, source.node) ? source.value() : UOp();
  }

  UOp rebuilt_value(UOp root, uint32_t user, NodeMap& done) {
    std::vector<UOp> stack{root}, srcs;
    while (!stack.empty()) {
      const UOp n = stack.back();
      if (done.has(n)) {
        stack.pop_back();
        continue;
      }
      if (const UOp instead = replacement(n, user)) {
        if (!done.has(instead)) {
          stack.push_back(instead);
          continue;
        }
        done.put(n, done.get(instead));
      } else if (n.dtype().is_index() && !reads_memory(n)) {
        done.put(n, n);
      } else {
        const size_t before = stack.size(), first = is_read(n) ? 1 : 0;
        prefetch_behind(n);
        for (UOp s : n.srcs().subspan(first)) {
          if (!done.has(s)) stack.push_back(s);
        }
        if (stack.size() > before) continue;
        srcs.clear();
        if (first == 1) srcs.push_back(rebuilt_memory(n.src(0)));
        for (UOp s : n.srcs().subspan(first)) srcs.push_back(done.get(s));
        done.put(n, followed(n, arena_.with_srcs(n, srcs)));
      }
      stack.pop_back();
    }
    return done.get(root);
  }

  std::vector<Decision>* decisions_;  // null: nobody asks
  UOp sink_;
  Arena& arena_;
  KernelLimits limits_;
  std::vector<StoredValue> values_;
  Levels levels_;
  std::vector<State> states_;
  std::vector<bool> is_joined_;  // it shares its loops with another stored value
  NodeMap numbers_;              // 1 + place in values_
  NodeMap inlined_;              // read -> what is computed instead
  NodeMap around_;   // a range of a reduction -> the REDUCE with the most loops around it
  NodeMap rebuilt_;  // BUFFERIZE, write, AFTER -> the new one
};

}  // namespace

UOp inline_buffers(UOp sink, const KernelLimits& limits, std::vector<Decision>* decisions) {
  return Inliner(sink, limits, decisions).run();
}

}  // namespace weft
