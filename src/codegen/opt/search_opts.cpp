// Rounds of candidates, timed in batches; kernels are known by their hash.
#include "codegen/opt/search_opts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/opt.h"
#include "codegen/opt/opt_actions.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr size_t kBatch = 16;  // candidates that are prepared together
constexpr size_t kTurns = 4;   // that the best of all are timed again

struct KeyHash {
  size_t operator()(const Hash128& h) const { return size_t(h.low); }
};

struct Candidate {
  OptList opts;
  UOp kernel;
  Hash128 key;
  double seconds = 0;
};

bool is_loop(UOp range) {
  return range.axis() != AxisType::kUpcast && range.axis() != AxisType::kUnroll &&
         range.axis() != AxisType::kGroupReduce && range.axis() != AxisType::kLane;
}

// The kernel with its loops and local memories numbered in the order in which they are met.
Hash128 key_of(UOp kernel) {
  std::map<int64_t, int64_t> loops, locals;
  Arena& arena = kernel.arena();
  return graph_hash(rebuild(kernel, [&](UOp n, std::span<const UOp> srcs) {
    if (n.is(Op::RANGE)) {
      const int64_t id = loops.try_emplace(n.range_id(), int64_t(loops.size())).first->second;
      return arena.make(n.op(), n.dtype(), srcs, Arg::range(id, n.axis()));
    }
    if (n.is(Op::DEFINE_LOCAL)) {
      const int64_t id = locals.try_emplace(n.number(), int64_t(locals.size())).first->second;
      return arena.make(n.op(), n.dtype(), srcs, Arg::integer(id));
    }
    if (n.is(Op::END) || n.is(Op::REDUCE)) {  // copies and lanes have no order
      std::vector<UOp> sorted(srcs.begin(), srcs.end());
      const auto copies = std::stable_partition(sorted.begin() + 1, sorted.end(), is_loop);
      std::sort(copies, sorted.end(), [](UOp a, UOp b) { return a.range_id() < b.range_id(); });
      return arena.with_srcs(n, sorted);
    }
    return arena.with_srcs(n, srcs);
  }));
}

// Nodes of the program: each as often as it is copied.
int64_t expanded_nodes(std::span<const UOp> order) {
  double nodes = 0;
  for (UOp n : order) {
    double copies = 1;
    for (UOp r : ranges_of(n)) {
      const bool is_copied = !is_loop(r) && r.axis() != AxisType::kLane;
      if (is_copied && r.src(0).is_const()) copies *= double(r.src(0).const_int());
    }
    nodes += copies;
  }
  return int64_t(std::min(nodes, 1e15));
}

int64_t local_bytes(std::span<const UOp> order) {
  double bytes = 0;
  for (UOp n : order) {
    if (!n.is(Op::DEFINE_LOCAL)) continue;
    bytes += double(n.src(0).const_int()) * double(n.dtype().item_bytes());
  }
  return int64_t(std::min(bytes, 1e15));
}

// How often values are computed: each once in every iteration of the innermost loop that it depends
// on, and of the loops around that one. Loops that change places may compute a sum anew in each
// iteration of a loop that it has nothing to do with.
double work_of(std::span<const UOp> order) {
  double work = 0;
  const auto places = [](UOp r) { return double(bounds(r.src(0)).hi); };
  for (UOp end : order) {
    if (!end.is(Op::END)) continue;
    const std::span<const UOp> loops = end.srcs().subspan(1);
    for (UOp n : toposort(end.src(0))) {
      if (n.dtype().is_index() || n.dtype().is_pointer()) continue;
      double times = 1, around = 1;
      for (UOp r : loops) {
        around *= places(r);
        if (is_in_scope(r, n)) times = around;
      }
      for (UOp r : ranges_of(n)) {
        if (std::ranges::find(loops, r) == loops.end()) times *= places(r);
      }
      work += times;
    }
  }
  return work;
}

class Search {
 public:
  Search(UOp kernel, const Target& target, size_t width, const SearchCalls& calls,
         const SearchBounds& bounds)
      : kernel_(kernel),
        target_(target),
        width_(std::max<size_t>(width, 1)),
        calls_(calls),
        bounds_(bounds),
        work_(work_of(toposort(kernel))) {}

  SearchResult run() {
    SearchResult result{.opts = choose_opts(kernel_, target_)};
    const Candidate chosen = candidate(result.opts, apply_all(result.opts));
    const Candidate nothing = candidate({}, kernel_);
    if (next_opts(kernel_, target_).empty()) return result;
    time_all({chosen});
    if (best_ && *best_ < bounds_.worth) {
      result.seconds = result.chosen_seconds = best_;
      result.timed = timed_;
      return result;
    }
    std::vector<Candidate> found = descend(chosen);
    const std::optional<double> reference = times_[chosen.key];
    if (nothing.key != chosen.key && (!reference || *reference < bounds_.slow)) {
      const std::vector<Candidate> others = descend(nothing);
      found.insert(found.end(), others.begin(), others.end());
    }
    return confirm(std::move(found), chosen);
  }

 private:
  bool is_over() const { return calls_.is_over && calls_.is_over(); }

  UOp apply_all(const OptList& opts) const {
    UOp at = kernel_;
    for (const Opt& opt : opts) at = apply_opt(at, opt);
    return at;
  }

  static Candidate candidate(OptList opts, UOp kernel) {
    return {std::move(opts), kernel, key_of(kernel)};
  }

  bool is_small(UOp kernel) const {
    const std::vector<UOp> order = toposort(kernel);
    return expanded_nodes(order) <= bounds_.nodes && local_bytes(order) <= bounds_.local_bytes &&
           work_of(order) <= work_ * bounds_.work;
  }

  // ---- one start

  std::vector<Candidate> descend(const Candidate& start) {
    std::vector<Candidate> beam = time_all({start});
    for (size_t round = 1; round <= bounds_.rounds && !beam.empty() && !is_over(); round++) {
      const double before = beam.front().seconds;
      std::vector<Candidate> all = beam;
      std::vector<Candidate> more = time_all(extend(beam));
      all.insert(all.end(), more.begin(), more.end());
      beam = best_of(std::move(all), width_);
      if (beam.front().seconds > before * (1 - bounds_.gain)) break;
    }
    return beam;
  }

  // The kernels one step away that this start has not come to yet, those of the best first in
  // turn with those of the others.
  std::vector<Candidate> extend(const std::vector<Candidate>& beam) {
    std::vector<std::vector<Candidate>> steps;
    for (const Candidate& from : beam) {
      if (!extended_.insert(from.key).second) continue;
      steps.push_back(steps_of(from));
    }
    std::vector<Candidate> out;
    std::unordered_set<Hash128, KeyHash> listed;
    size_t most = 0;
    for (const auto& list : steps) most = std::max(most, list.size());
    for (size_t i = 0; i < most; i++) {
      for (const auto& list : steps) {
        if (i < list.size() && out.size() < bounds_.candidates && listed.insert(list[i].key).second)
          out.push_back(list[i]);
      }
    }
    return out;
  }

  std::vector<Candidate> steps_of(const Candidate& from) const {
    std::vector<Candidate> out;
    const auto add = [&](OptList opts, UOp kernel) {
      if (is_small(kernel)) out.push_back(candidate(std::move(opts), kernel));
    };
    for (const Opt& opt : next_opts(from.kernel, target_)) {
      const bool is_done = std::ranges::find(from.opts, opt) != from.opts.end();
      if (opt.kind == OptKind::kStage && is_done) continue;
      OptList opts = from.opts;
      opts.push_back(opt);
      if (const UOp kernel = applied(from.kernel, {&opt, 1})) add(std::move(opts), kernel);
    }
    for (OptList& opts : with_other_amounts(from.opts, target_)) {
      if (const UOp kernel = applied(kernel_, opts)) add(std::move(opts), kernel);
    }
    return out;
  }

  // None when one of them does not apply.
  static UOp applied(UOp kernel, std::span<const Opt> opts) {
    for (const Opt& opt : opts) {
      if (!why_not(kernel, opt).empty()) return {};
      try {
        kernel = apply_opt(kernel, opt);
      } catch (const CompileError&) {
        return {};
      }
    }
    return kernel;
  }

  // ---- timing

  // Those that run, with their time, the best first. What was timed before is not timed again.
  std::vector<Candidate> time_all(std::vector<Candidate> candidates) {
    rounds_++;
    for (size_t first = 0; first < candidates.size() && !is_over(); first += kBatch) {
      const size_t count = std::min(kBatch, candidates.size() - first);
      const std::span batch = std::span(candidates).subspan(first, count);
      prepare(batch);
      for (size_t i = 0; i < count; i++) {
        const Candidate& c = batch[i];
        if (!times_.contains(c.key) && !is_over()) times_[c.key] = time(c.opts);
        report(first + i + 1, candidates.size());
      }
    }
    std::vector<Candidate> out;
    for (Candidate& c : candidates) {
      const auto at = times_.find(c.key);
      if (at == times_.end() || !at->second) continue;
      c.seconds = *at->second;
      out.push_back(std::move(c));
    }
    return best_of(std::move(out), candidates.size());
  }

  void prepare(std::span<const Candidate> batch) const {
    if (!calls_.prepare) return;
    std::vector<OptList> lists;
    for (const Candidate& c : batch) {
      if (!times_.contains(c.key)) lists.push_back(c.opts);
    }
    if (lists.size() > 1) calls_.prepare(lists);
  }

  std::optional<double> time(const OptList& opts) {
    timed_++;
    const std::optional<double> seconds = calls_.time(opts);
    if (seconds && (!best_ || *seconds < *best_)) best_ = seconds;
    return seconds;
  }

  void report(size_t done, size_t count) const {
    if (calls_.progress) calls_.progress({rounds_, done, count, best_});
  }

  // Of equal times, the shorter list.
  static std::vector<Candidate> best_of(std::vector<Candidate> all, size_t most) {
    std::ranges::stable_sort(all, [](const Candidate& a, const Candidate& b) {
      if (a.seconds != b.seconds) return a.seconds < b.seconds;
      return a.opts.size() < b.opts.size();
    });
    if (all.size() > most) all.resize(most);
    return all;
  }

  // ---- the end

  void prepare_again(std::span<const Candidate> found, const Candidate& chosen) const {
    if (!calls_.prepare) return;
    std::vector<OptList> lists{chosen.opts};
    for (const Candidate& c : found) lists.push_back(c.opts);
    calls_.prepare(lists);
  }

  double time_again(const OptList& opts, double before) {
    return std::min(time(opts).value_or(before), before);
  }

  // What disturbs a measurement makes it longer: the best are timed again, in turn with what
  // choose_opts says, which wins unless it is beaten clearly.
  SearchResult confirm(std::vector<Candidate> found, const Candidate& chosen) {
    SearchResult result{.opts = chosen.opts};
    found = best_of(std::move(found), width_);
    std::optional<double> reference = times_[chosen.key];
    const bool is_open = !found.empty() && found[0].key != chosen.key;
    if (is_open) prepare_again(found, chosen);
    for (size_t turn = 0; is_open && turn < kTurns; turn++) {
      for (Candidate& c : found) c.seconds = time_again(c.opts, c.seconds);
      if (reference) reference = time_again(chosen.opts, *reference);
    }
    result.seconds = result.chosen_seconds = reference;
    found = best_of(std::move(found), 1);
    if (!found.empty() && found[0].key != chosen.key &&
        (!reference || found[0].seconds < *reference * (1 - bounds_.gain))) {
      result.opts = found[0].opts;
      result.seconds = found[0].seconds;
    }
    result.timed = timed_;
    return result;
  }

  const UOp kernel_;
  const Target& target_;
  const size_t width_;
  const SearchCalls& calls_;
  const SearchBounds bounds_;
  const double work_;
  std::unordered_map<Hash128, std::optional<double>, KeyHash> times_;
  std::unordered_set<Hash128, KeyHash> extended_;
  std::optional<double> best_;
  size_t timed_ = 0, rounds_ = 0;
};

}  // namespace

SearchResult search_opts(UOp kernel, const Target& target, size_t width, const SearchCalls& calls,
                         const SearchBounds& bounds) {
  return Search(kernel, target, width, calls, bounds).run();
}

}  // namespace weft
