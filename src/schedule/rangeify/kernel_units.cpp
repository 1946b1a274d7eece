// Grouping writes: by version, by shared work, then by equal loops at equal depth.
#include "schedule/rangeify/kernel_units.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/scope.h"
#include "rewrite/trace.h"
#include "schedule/rangeify/buffer_cost.h"
#include "schedule/rangeify/stored_values.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

constexpr size_t kMostSearched = 4096;  // units looked at before two are said to depend

constexpr size_t kMostPaired = 24;  // kernels of which every pair is explained
constexpr size_t kMostOpen = 16;    // kernels of the same loops that others may join

struct Unit {
  std::vector<uint32_t> writes;  // in values_
  std::vector<uint32_t> needs;   // units whose memory it reads
  std::vector<UOp> reads;        // INDEX nodes
  std::vector<UOp> memories;     // that it reads or writes, as versions
  std::vector<UOp> reductions;
  UOp device{};  // of the BUFFERs that it reads or writes; null: it has none
  size_t statements = 0;
  bool has_contraction = false;
  bool is_sequence = false;  // its loops run one after the other
  bool is_serial = false;    // iterations of its loops may meet: it shares them with nobody
};

template <class T>
void add_once(std::vector<T>& list, const T& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

std::vector<UOp> loops_of(const StoredValue& v) {
  std::vector<UOp> out;
  for (UOp r : v.ranges()) {
    if (r.is(Op::RANGE)) out.push_back(r);
  }
  return out;
}

class Grouping {
 public:
  Grouping(UOp sink, const KernelLimits& limits, std::vector<Decision>* decisions)
      : decisions_(decisions),
        sink_(sink),
        limits_(limits),
        values_(stored_values(sink)),
        unit_of_version_(sink.arena()),
        readers_(sink.arena()) {}

  std::vector<KernelUnit> run() {
    make_units();
    parents_.resize(units_.size());
    std::iota(parents_.begin(), parents_.end(), 0u);
    if (limits_.sequences) join_making_with_writing();
    join_shared_reductions();
    gather();
    order();
    return merge();
  }

 private:
  // ---- one unit per version

  void make_units() {
    for (uint32_t i = 0; i < values_.size(); i++) {
      const UOp version = values_[i].version;
      if (!unit_of_version_.has(version)) {
        units_.emplace_back();
        unit_of_version_.put_number(version, units_.size());
      }
      const uint32_t u = uint32_t(unit_of_version_.number(version) - 1);
      units_[u].writes.push_back(i);
      describe(units_[u], values_[i], u);
    }
    for (UOp s : sink_.srcs()) count_reader(s, UINT32_MAX - 1);
  }

  void describe(Unit& unit, const StoredValue& v, uint32_t u) {
    const UOp target = v.store().src(0);
    add_once(unit.memories, target.src(0));
    note_device(unit, target.src(0));
    if (target.src(0).is(Op::AFTER)) {
      add_once(unit.needs, uint32_t(unit_of_version_.number(target.src(0)) - 1));
    }
    unit.is_serial = unit.is_serial || v.is_serial();
    visit_computation(v.roots(), [&](UOp n) {
      if (is_read(n)) {
        unit.reads.push_back(n);
        add_once(unit.memories, n.src(0));
        note_device(unit, n.src(0));
        count_reader(n.src(0), u);
        if (n.src(0).is(Op::AFTER)) {
          add_once(unit.needs, uint32_t(unit_of_version_.number(n.src(0)) - 1));
        }
      } else {
        unit.statements++;
        if (n.is(Op::REDUCE)) add_once(unit.reductions, n);
        if (n.is(Op::DEFINE_LOCAL)) unit.is_serial = true;  // its loops are a program of their own
      }
    });
  }

  // What is made from memory of a device is made there.
  void note_device(Unit& unit, UOp memory) const {
    if (unit.device) return;
    const UOp base = memory_of(memory);
    if (base.is(Op::BUFFER)) {
      unit.device = base.src(1);
    } else if (const uint64_t making = unit_of_version_.number(memory)) {
      unit.device = units_[making - 1].device;
    }
  }
  static bool on_one_device(const Unit& a, const Unit& b) {
    return !a.device || !b.device || a.device == b.device;
  }

  // Which unit reads a version: 1 + its number, or 0xffffffff when more than one does.
  void count_reader(UOp memory, uint32_t u) {
    if (!memory.is(Op::AFTER)) return;
    const uint64_t known = readers_.number(memory);
    if (known == 0) {
      readers_.put_number(memory, uint64_t(u) + 1);
    } else if (known != uint64_t(u) + 1) {
      readers_.put_number(memory, UINT32_MAX);
    }
  }

  // ---- joins

  uint32_t find(uint32_t u) {
    while (parents_[u] != u) u = parents_[u] = parents_[parents_[u]];
    return u;
  }
  // The later one stays: its place in the order is after all that both need.
  void join(uint32_t a, uint32_t b) {
    a = find(a), b = find(b);
    if (a == b) return;
    if (a > b) std::swap(a, b);
    parents_[a] = b;
    Unit &from = units_[a], &to = units_[b];
    to.writes.insert(to.writes.begin(), from.writes.begin(), from.writes.end());
    for (uint32_t n : from.needs) add_once(to.needs, n);
    to.reads.insert(to.reads.end(), from.reads.begin(), from.reads.end());
    for (UOp m : from.memories) add_once(to.memories, m);
    for (UOp r : from.reductions) add_once(to.reductions, r);
    to.statements += from.statements;
    if (!to.device) to.device = from.device;
    to.is_sequence = to.is_sequence || from.is_sequence;
    from = {};
  }

  void join_making_with_writing() {
    for (uint32_t u = 0; u < units_.size(); u++) {
      if (units_[u].writes.empty()) continue;
      const UOp base = values_[units_[u].writes.back()].store().src(0).src(0);
      if (!base.is(Op::AFTER)) continue;
      const uint64_t reader = readers_.number(base);
      if (reader != 0 && reader != u + 1) continue;
      const uint32_t making = find(uint32_t(unit_of_version_.number(base) - 1));
      if (units_[making].is_serial || units_[u].is_serial) continue;
      if (contracts(units_[making]) && contracts(units_[u])) continue;  // faster alone
      if (fits(units_[making], units_[u]) && !reads_overwritten(units_[u], units_[making])) {
        join(making, u);
        units_[find(u)].is_sequence = true;
      }
    }
  }

  bool contracts(const Unit& unit) const {
    return !unit.reductions.empty() && std::ranges::any_of(unit.writes, [&](uint32_t w) {
      return work_of(values_[w]).has_contraction;
    });
  }

  // Unit a reads memory as it is before b writes to it.
  bool reads_overwritten(const Unit& a, const Unit& b) const {
    return std::any_of(b.writes.begin(), b.writes.end(), [&](uint32_t w) {
      const UOp memory = values_[w].store().src(0).src(0);
      return std::any_of(a.reads.begin(), a.reads.end(),
                         [&](UOp read) { return read.src(0) == memory; });
    });
  }

  bool fits(const Unit& a, const Unit& b) const {
    return on_one_device(a, b) && a.statements + b.statements <= limits_.statements &&
           a.writes.size() + b.writes.size() <= limits_.writes &&
           a.memories.size() + b.memories.size() <= limits_.buffers &&
           a.reductions.size() + b.reductions.size() <= limits_.accumulators;
  }

  void join_shared_reductions() {
    NodeMap first(sink_.arena());
    for (uint32_t u = 0; u < units_.size(); u++) {
      const std::vector<UOp> reductions = units_[u].reductions;
      for (UOp r : reductions) {
        if (!first.has(r)) {
          first.put_number(r, u + 1);
          continue;
        }
        const uint32_t other = find(uint32_t(first.number(r) - 1)), own = find(u);
        if (other == own || !has_equal_loops(other, own)) continue;
        if (units_[other].is_serial || units_[own].is_serial) continue;
        if (!fits(units_[other], units_[own])) continue;
        if (!can_run_together(own, other) || !can_run_together(other, own)) continue;
        if (!depends(own, other) && !depends(other, own)) join(other, own);
      }
    }
  }

  bool has_equal_loops(uint32_t a, uint32_t b) const {
    const std::vector<UOp> loops = loops_of(values_[units_[a].writes[0]]);
    const auto same = [&](uint32_t w) { return loops_of(values_[w]) == loops; };
    return std::all_of(units_[a].writes.begin(), units_[a].writes.end(), same) &&
           std::all_of(units_[b].writes.begin(), units_[b].writes.end(), same);
  }

  // Whether a needs b, directly or not; also when that would take long to find out.
  bool depends(uint32_t a, uint32_t b) {
    marks_.resize(units_.size());
    mark_++;
    std::vector<uint32_t> todo{a};
    marks_[a] = mark_;
    size_t searched = 0;
    while (!todo.empty()) {
      const uint32_t u = todo.back();
      todo.pop_back();
      for (uint32_t need : units_[u].needs) {
        need = find(need);
        if (need == b && u != b) return true;
        if (marks_[need] == mark_) continue;
        if (++searched > kMostSearched) return true;
        marks_[need] = mark_;
        todo.push_back(need);
      }
    }
    return false;
  }

  // Units that are left, needs by representative.
  void gather() {
    for (uint32_t u = 0; u < units_.size(); u++) {
      if (find(u) != u) continue;
      Unit& unit = units_[u];
      std::vector<uint32_t> needs;
      for (uint32_t n : unit.needs) {
        if (find(n) != u) needs.push_back(find(n));
      }
      std::sort(needs.begin(), needs.end());
      needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
      unit.needs = std::move(needs);
      unit.has_contraction = contracts(unit);
    }
  }

  // ---- order and levels

  // Every reader of memory that a unit writes in place comes first, where that is possible.
  struct Waiting {
    std::vector<std::pair<uint32_t, bool>> before;  // reader, and whether it may share the kernel
  };

  void order() {
    const size_t count = units_.size();
    std::vector<std::vector<uint32_t>> users(count), waiters(count);
    std::vector<uint32_t> needed(count), awaited(count);
    std::vector<Waiting> waiting(count);
    NodeMap writer(sink_.arena());  // memory as found -> 1 + the unit that writes it
    for (uint32_t u = 0; u < count; u++) {
      for (uint32_t w : units_[u].writes) {
        writer.put_number(values_[w].store().src(0).src(0), u + 1);
      }
      needed[u] = uint32_t(units_[u].needs.size());
      for (uint32_t n : units_[u].needs) users[n].push_back(u);
    }
    for (uint32_t u = 0; u < count; u++) {
      std::vector<uint32_t> seen;
      for (UOp read : units_[u].reads) {
        const uint64_t number = writer.number(read.src(0));
        if (number == 0 || number == u + 1) continue;
        const uint32_t w = uint32_t(number - 1);
        if (std::find(seen.begin(), seen.end(), w) != seen.end()) continue;
        seen.push_back(w);
        waiting[w].before.emplace_back(u, can_run_together(u, w));
        waiters[u].push_back(w);
        awaited[w]++;
      }
    }
    levels_.assign(count, 0);
    std::vector<bool> is_done(count);
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready, blocked;
    const auto offer = [&](uint32_t u) { (awaited[u] == 0 ? ready : blocked).push(u); };
    for (uint32_t u = 0; u < count; u++) {
      if (needed[u] == 0 && !units_[u].writes.empty()) offer(u);
    }
    while (!ready.empty() || !blocked.empty()) {
      auto& queue = ready.empty() ? blocked : ready;
      const uint32_t u = queue.top();
      queue.pop();
      if (is_done[u]) continue;
      is_done[u] = true;
      uint32_t level = 1;
      for (uint32_t n : units_[u].needs) level = std::max(level, levels_[n] + 1);
      for (const auto& [reader, may_share] : waiting[u].before) {
        if (is_done[reader]) level = std::max(level, levels_[reader] + (may_share ? 0 : 1));
      }
      levels_[u] = level;
      order_.push_back(u);
      for (uint32_t w : waiters[u]) {
        if (--awaited[w] == 0 && needed[w] == 0 && !is_done[w]) ready.push(w);
      }
      for (uint32_t user : users[u]) {
        if (--needed[user] == 0) offer(user);
      }
    }
    may_wait_.resize(count);
    for (uint32_t u = 0; u < count; u++) may_wait_[u] = users[u].empty() && waiters[u].empty();
  }

  // A unit reads only those elements that the same iterations of another one write.
  bool can_run_together(uint32_t reader, uint32_t writer) const {
    const Unit &a = units_[reader], &b = units_[writer];
    if (a.is_serial || b.is_serial) return false;
    if (!has_equal_loops(reader, writer)) return false;
    for (uint32_t w : b.writes) {
      const UOp target = values_[w].store().src(0);
      for (UOp read : a.reads) {
        if (read.src(0) != target.src(0)) continue;
        if (a.is_sequence || b.is_sequence || !is_same_element(read, target)) return false;
      }
    }
    return true;
  }
  static bool is_same_element(UOp read, UOp target) {
    return std::equal(read.srcs().begin(), read.srcs().end(), target.srcs().begin(),
                      target.srcs().end());
  }

  // ---- kernels over the same loops

  using LoopIds = std::vector<uint32_t>;

  std::vector<KernelUnit> merge() {
    std::map<std::pair<uint32_t, LoopIds>, std::vector<uint32_t>> open;
    std::map<LoopIds, std::vector<uint32_t>> late;  // of the open ones, those that may wait
    std::map<LoopIds, std::vector<uint32_t>> recent;
    std::vector<uint32_t> heads;
    const auto join = [&](uint32_t group, uint32_t u, const LoopIds& key) {
      absorb(group, u);
      may_wait_[group] = may_wait_[group] && may_wait_[u];
      if (!may_wait_[group]) std::erase(late[key], group);
    };
    for (uint32_t u : order_) {
      if (!has_equal_loops(u, u)) {
        heads.push_back(u);
        continue;
      }
      LoopIds key;
      for (UOp r : loops_of(values_[units_[u].writes[0]])) key.push_back(r.id());
      std::vector<uint32_t>& candidates = open[{levels_[u], key}];
      const auto fits = [&](uint32_t g) { return why_apart(g, u).empty(); };
      const auto partner = std::find_if(candidates.rbegin(), candidates.rend(), fits);
      if (partner != candidates.rend()) {
        join(*partner, u, key);
        continue;
      }
      if (candidates.size() == kMostOpen) candidates.erase(candidates.begin());
      // One that nothing waits for runs with one of a later level as well.
      std::vector<uint32_t>& waiting = late[key];
      const auto before = std::find_if(waiting.rbegin(), waiting.rend(), [&](uint32_t g) {
        return levels_[g] < levels_[u] && fits(g);
      });
      if (before != waiting.rend()) {
        const uint32_t group = *before;
        std::erase(open[{levels_[group], key}], group);
        levels_[group] = levels_[u];
        candidates.push_back(group);
        join(group, u, key);
        continue;
      }
      std::vector<uint32_t>& last = recent[key];
      const auto behind = std::find_if(last.rbegin(), last.rend(), [&](uint32_t g) {
        return may_wait_[u] && levels_[g] > levels_[u] && fits(g);
      });
      if (behind != last.rend()) {
        join(*behind, u, key);
        continue;
      }
      if (last.size() == kMostOpen) last.erase(last.begin());
      last.push_back(u);
      candidates.push_back(u);
      heads.push_back(u);
      if (!may_wait_[u]) continue;
      if (waiting.size() == kMostOpen) waiting.erase(waiting.begin());
      waiting.push_back(u);
    }
    // A unit that joined a kernel may need one that comes after its first member: not by level.
    std::stable_sort(heads.begin(), heads.end(),
                     [&](uint32_t a, uint32_t b) { return levels_[a] < levels_[b]; });
    if (decisions_ != nullptr) note_pairs(heads);
    std::vector<KernelUnit> kernels;
    for (uint32_t u : heads) {
      KernelUnit kernel;
      for (uint32_t w : units_[u].writes) kernel.push_back(values_[w]);
      kernels.push_back(std::move(kernel));
    }
    return kernels;
  }

  void absorb(uint32_t group, uint32_t u) {
    Unit &to = units_[group], &from = units_[u];
    to.writes.insert(to.writes.end(), from.writes.begin(), from.writes.end());
    to.reads.insert(to.reads.end(), from.reads.begin(), from.reads.end());
    for (UOp m : from.memories) add_once(to.memories, m);
    for (UOp r : from.reductions) add_once(to.reductions, r);
    to.statements += from.statements;
    if (!to.device) to.device = from.device;
    to.has_contraction = to.has_contraction || from.has_contraction;
    to.is_sequence = to.is_sequence || from.is_sequence;
  }

  // Every pair of a few kernels; of many, each with the one before it.
  void note_pairs(const std::vector<uint32_t>& heads) {
    for (size_t i = 1; i < heads.size(); i++) {
      const size_t first = heads.size() <= kMostPaired ? 0 : i - 1;
      for (size_t j = first; j < i; j++) {
        const uint32_t a = heads[j], b = heads[i];
        const UOp later = values_[units_[b].writes[0]].node;
        decisions_->push_back(
            {later, values_[units_[a].writes[0]].node, "two kernels", why_two(a, b)});
      }
    }
  }
  std::string_view why_two(uint32_t a, uint32_t b) {
    if (depends(b, a) || depends(a, b)) return "one reads what the other makes";
    if (!has_equal_loops(a, b)) return "their loops differ";
    if (levels_[a] != levels_[b]) return "one waits for more kernels than the other";
    const std::string_view why = why_apart(a, b);
    return why.empty() ? "too many kernels of these loops are open" : why;
  }

  // Of two units with the same loops at the same level; "": they can share a kernel.
  std::string_view why_apart(uint32_t group, uint32_t u) const {
    const Unit &a = units_[group], &b = units_[u];
    if (a.statements + b.statements > limits_.statements) return "together they are too large";
    if (!on_one_device(a, b)) return "they are on different devices";
    if (a.reductions.size() + b.reductions.size() > limits_.accumulators) {
      return "together they have too many reductions";
    }
    size_t memories = a.memories.size();
    bool shares_memory = false;
    for (UOp m : b.memories) {
      const bool is_shared = std::find(a.memories.begin(), a.memories.end(), m) != a.memories.end();
      memories += is_shared ? 0 : 1;
      shares_memory = shares_memory || is_shared;
    }
    if (memories > limits_.buffers) return "together they have too many buffers";
    if (a.writes.size() + b.writes.size() > limits_.writes) {
      return "together they write too often";
    }
    if (a.reductions.empty() != b.reductions.empty()) return "only one of them reduces";
    if (!a.reductions.empty()) {
      if (!shares_memory) return "they reduce what lies in different memory";
      if (a.has_contraction || b.has_contraction) return "a contraction is faster alone";
      if (reduced_sizes(a) != reduced_sizes(b) || !reductions_nest(a, b)) {
        return "they reduce over different loops";
      }
    }
    const bool is_possible = can_run_together(group, u) && can_run_together(u, group);
    return is_possible ? ""
                       : "an iteration of one reads what another iteration of the other writes";
  }

  // Reductions that run in some of the loops only have these outermost: of any two, the loops of
  // one are among those of the other.
  static bool reductions_nest(const Unit& a, const Unit& b) {
    const auto is_within = [](std::span<const UOp> x, std::span<const UOp> y) {
      return std::ranges::all_of(x, [&](UOp r) { return std::ranges::find(y, r) != y.end(); });
    };
    return std::ranges::all_of(a.reductions, [&](UOp x) {
      return std::ranges::all_of(b.reductions, [&](UOp y) {
        return is_within(ranges_of(x), ranges_of(y)) || is_within(ranges_of(y), ranges_of(x));
      });
    });
  }

  static std::vector<uint32_t> reduced_sizes(const Unit& unit) {
    std::vector<uint32_t> sizes;
    for (UOp reduce : unit.reductions) {
      for (UOp r : reduce.srcs().subspan(1)) add_once(sizes, r.src(0).id());
    }
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  }

  std::vector<Decision>* decisions_;  // null: nobody asks
  UOp sink_;
  KernelLimits limits_;
  std::vector<StoredValue> values_;
  NodeMap unit_of_version_;  // AFTER -> 1 + unit
  NodeMap readers_;
  std::vector<Unit> units_;
  std::vector<uint32_t> parents_, levels_, order_;
  std::vector<bool> may_wait_;   // nothing runs after it
  std::vector<uint32_t> marks_;  // of searches: by which one a unit was seen last
  uint32_t mark_ = 0;
};

}  // namespace

std::vector<KernelUnit> form_kernels(UOp sink, const KernelLimits& limits,
                                     std::vector<Decision>* decisions) {
  return Grouping(sink, limits, decisions).run();
}

std::string text_of(const std::vector<KernelUnit>& units) {
  std::string out;
  for (size_t i = 0; i < units.size(); i++) {
    out += fmt::format("  kernel {}:", i);
    for (const StoredValue& write : units[i]) out += " " + short_form(write.node, 80);
    out += "\n";
  }
  return out;
}

}  // namespace weft
