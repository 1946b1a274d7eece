// One explicit stack serves both orders. A frame is a node on its way to its result:
//
//   bottom-up   sources -> rebuild -> rules -> (wait for what a rule made) -> done
//   top-down    rules -> (wait) | sources -> rebuild -> (wait) -> done
//
// The memo maps a node to its result. A node that is needed while it is itself on its way is a loop
// of rules; a stack of waiting frames that outgrows the nodes of the graph is growth without end.
#include "rewrite/graph_rewrite.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/interrupt.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/origins.h"
#include "ir/print.h"
#include "ir/shape.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "rewrite/loop_error.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "rewrite/statistics.h"
#include "rewrite/trace.h"

namespace weft {
namespace {

using Counting = RuleSet::Counting;

// Waiting frames, and bytes of nodes, that are allowed beyond what the size of the graph explains.
constexpr size_t kShortChain = 1'000;  // shorter chains are not looked at
constexpr size_t kFreeDepth = 10'000, kDepthPerNode = 2;
constexpr size_t kMostSteps = 100'000;  // of a chain whose terms do not grow: they may come back
constexpr size_t kFreeBytes = size_t(64) << 20, kBytesPerNode = 4096;

constexpr size_t kStepsPerCheck = 1024;  // whether the call is to end

enum class State : uint8_t { kStart, kSources, kWaiting };

struct Frame {
  UOp node;                    // what the memo will know
  UOp now;                     // what it has become so far
  const Rule* rule = nullptr;  // that made `next`
  UOp next;                    // what is waited for
  uint32_t source = 0;         // the first source not looked at
  State state = State::kStart;
  bool changed = false;  // a source has another result than itself
};

template <Counting counting>
class Engine {
 public:
  Engine(UOp root, const RuleSet& rules, const RewriteOptions& options)
      : rules_(rules),
        options_(options),
        arena_(root.arena()),
        first_new_(uint32_t(arena_.size())),
        bytes_before_(arena_.node_bytes()),
        memo_(arena_),
        sighted_(arena_),
        met_(arena_) {
    if constexpr (counting == Counting::kOn) counts_.resize(rules.rules().size());
  }

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() {  // also when a loop was found: then one wants the counts most
    if constexpr (counting == Counting::kOn) add_rule_counts(rules_.rules(), counts_);
  }

  UOp run(UOp root) {
    if (is_settled(root)) return root;
    push(root);
    if (options_.order == Order::kBottomUp) {
      for (size_t step = 0; !stack_.empty(); step++) {
        if (step % kStepsPerCheck == kStepsPerCheck - 1) check_interrupt();
        bottom_up();
      }
    } else {
      for (size_t step = 0; !stack_.empty(); step++) {
        if (step % kStepsPerCheck == kStepsPerCheck - 1) check_interrupt();
        top_down();
      }
    }
    return memo_.get(root);
  }

 private:
  static constexpr uint64_t kOnItsWay = 1;

  void bottom_up() {
    Frame& f = stack_.back();
    switch (f.state) {
      case State::kStart:
        f.state = State::kSources;
        if (!descends(f.node)) f.source = uint32_t(f.node.src_count());
        [[fallthrough]];
      case State::kSources:
        if (!sources_done(f)) return;
        f.now = rebuilt(f);
        if (f.now != f.node) {
          if (const UOp known = settled(f.now)) return finish(f, known);
        }
        if (!fire(f)) finish(f, f.now);
        return;
      case State::kWaiting: return finish(f, memo_.get(f.next));
    }
  }

  void top_down() {
    Frame& f = stack_.back();
    switch (f.state) {
      case State::kStart:
        if (fire(f)) return;
        f.state = State::kSources;
        if (!descends(f.node)) f.source = uint32_t(f.node.src_count());
        [[fallthrough]];
      case State::kSources: {
        if (!sources_done(f)) return;
        const UOp next = rebuilt(f);
        if (next == f.node) return finish(f, f.node);
        f.rule = nullptr;
        return wait_for(f, next);  // the rules see the rebuilt node
      }
      case State::kWaiting: return finish(f, memo_.get(f.next));
    }
  }

  bool descends(UOp n) const {
    return options_.descend == nullptr || options_.descend(n, options_.context);
  }

  // A leaf that no rule can change is its own result, without a place in the memo.
  bool is_settled(UOp n) const { return n.src_count() == 0 && !rules_.has_rules_for(n.op()); }

  UOp settled(UOp n) const {
    const uint64_t known = memo_.number(n);
    if (known > kOnItsWay) return UOp(reinterpret_cast<const Node*>(known));
    return known == 0 && is_settled(n) ? n : UOp();
  }

  // Looks at the sources in turn; pushes the first that has no result yet.
  bool sources_done(Frame& f) {
    const std::span<const UOp> srcs = f.node.srcs();
    for (; f.source < srcs.size(); f.source++) {
      const UOp s = srcs[f.source];
      const uint64_t known = memo_.number(s);
      if (known > kOnItsWay) {
        f.changed |= known != uint64_t(uintptr_t(s.node()));
      } else if (known == kOnItsWay) {
        report_loop(s);
      } else if (!is_settled(s)) {
        if (settles_at_once(s)) continue;
        return false;
      }
    }
    return true;
  }

  // Gives s a frame, unless it needs none: bottom-up, most nodes stand on settled sources and no
  // rule applies to them.
  bool settles_at_once(UOp s) {
    if (!stands_on_settled(s)) {
      push(s);
      return false;
    }
    const RuleSet::Rewrite r = attempt(s);
    if (!r.result) {
      prefetch_behind(s);
      seen_ += s.id() < first_new_ ? 1 : 0;
      memo_.put(s, s);
      return true;
    }
    push(s);
    begin_to_wait(stack_.back(), r);
    return false;
  }

  bool stands_on_settled(UOp n) const {
    if (options_.order != Order::kBottomUp || options_.descend != nullptr) return false;
    for (UOp s : n.srcs()) {
      const uint64_t known = memo_.number(s);
      if (known != uint64_t(uintptr_t(s.node())) && (known != 0 || !is_settled(s))) return false;
    }
    return true;
  }

  UOp rebuilt(const Frame& f) {
    if (!f.changed) return f.node;
    srcs_.clear();
    for (UOp s : f.node.srcs()) {
      const UOp r = settled(s);
      srcs_.push_back(r ? r : s);
    }
    return followed(f.node, arena_.with_srcs(f.node, srcs_));
  }

  // Tries the rules on f.now; when one applies, f waits for what it made.
  bool fire(Frame& f) {
    const RuleSet::Rewrite r = attempt(f.now);
    if (r.result) begin_to_wait(f, r);
    return bool(r.result);
  }

  RuleSet::Rewrite attempt(UOp n) {
    const RuleSet::Rewrite r = rules_.rewrite<counting>(
        n, options_.context, counting == Counting::kOn ? counts_.data() : nullptr);
    return r.result && keeps_shape(n, r.result) ? r : RuleSet::Rewrite{};
  }

  void begin_to_wait(Frame& f, const RuleSet::Rewrite& r) {
    f.rule = r.rule;
    if (options_.trace != nullptr) {
      options_.trace->passes.back().steps.push_back({f.now, r.result, r.rule});
    }
    if constexpr (counting == Counting::kOn) {
      if (config().stats > 1) {
        fmt::print(stderr, "{}: {} -> {}\n", r.rule->name, short_form(f.now, 120),
                   short_form(r.result, 120));
      }
    }
    if (f.now != f.node) memo_.put_number(f.now, kOnItsWay);
    wait_for(f, followed(f.now, r.result));
  }

  // Nothing of dtype index has a shape: what is simplified most is not looked at.
  bool keeps_shape(UOp before, UOp after) const {
    if (options_.shapes == Shapes::kMayChange || before.dtype().is_index()) return true;
    const Shape a = shape_of(before), b = shape_of(after);
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  void wait_for(Frame& f, UOp next) {
    f.state = State::kWaiting;
    f.next = next;
    waiting_++;
    if (const UOp known = settled(next)) return finish(f, known);
    if (memo_.number(next) == kOnItsWay) report_loop(next);
    note_progress(f.now);
    const bool is_large = arena_.node_bytes() - bytes_before_ > kFreeBytes + kBytesPerNode * seen_;
    const bool is_deep = waiting_ > kFreeDepth + kDepthPerNode * progress_ + patience_;
    if (is_large || (is_deep && !may_come_back())) report_growth();
    push(next);
  }

  void push(UOp n) {
    memo_.put_number(n, kOnItsWay);
    // In a large graph the second source is on its way from memory while the first is looked at.
    if (n.src_count() > 1) __builtin_prefetch(n.src(1).node());
    // Growth is measured against the nodes that were there before: count them as they come by. On
    // the way down a rule has looked at the sources before their turn comes.
    if (options_.order == Order::kBottomUp) {
      seen_ += n.id() < first_new_ ? 1 : 0;
    } else {
      for (UOp s : n.srcs()) seen_ += s.id() < first_new_ && first_sight(s) ? 1 : 0;
    }
    stack_.push_back({.node = n, .now = n, .next = UOp()});
  }

  // A long chain of waiting frames is legal while it works its way through nodes that were there
  // when it began: those count, each once, where a rule met them, as a source or right below a new
  // one.
  void note_progress(UOp n) {
    if (waiting_ == 1) {
      chain_++;
      chain_start_ = uint32_t(arena_.size());
      progress_ = 0;
      patience_ = 0;
    }
    if (waiting_ <= kShortChain) return;
    for (UOp s : n.srcs()) {
      meet(s);
      if (s.id() >= chain_start_) {
        for (UOp below : s.srcs()) meet(below);
      }
    }
  }
  void meet(UOp n) {
    if (n.id() >= chain_start_ || met_.number(n) == chain_) return;
    met_.put_number(n, chain_);
    progress_++;
  }

  bool first_sight(UOp n) {
    if (sighted_.has(n)) return false;
    sighted_.put_number(n, 1);
    return true;
  }

  void finish(Frame& f, UOp result) {
    prefetch_behind(f.node);
    memo_.put(f.node, followed(f.node, result));
    if (f.now != f.node) memo_.put(f.now, result);
    if (f.state == State::kWaiting) waiting_--;
    stack_.pop_back();
  }

  // -------------------------------------------------------------------------------------- reports

  std::string pass_name() const {
    return std::string(options_.pass.empty() ? rules_.name() : options_.pass);
  }

  // A chain longer than one should be whose terms stay as small as they are goes on for a while:
  // its first term may be on its way.
  bool may_come_back() {
    constexpr size_t apart = 31;
    if (waiting_ >= kMostSteps) return false;
    const std::span<const Frame> last = std::span(stack_).last(kShortChain);
    size_t earlier = 0, later = 0;  // the largest terms
    for (size_t i = 0; i < last.size(); i++) {
      if (last[i].state == State::kSources) return false;  // each term encloses the next
      if (i % apart != 0) continue;
      size_t& largest = i < last.size() / 2 ? earlier : later;
      largest = std::max(largest, new_nodes(last[i].now));
    }
    patience_ += std::min(waiting_, kMostSteps - waiting_);
    return later <= earlier;
  }

  // How many nodes of a term were made since the chain began.
  size_t new_nodes(UOp root) const {
    size_t count = 0;
    NodeMap seen(arena_);
    visit_missing(
        root, [&](UOp n) { return n.id() < chain_start_ || seen.has(n); },
        [&](UOp n) {
          seen.put_number(n, 1);
          count++;
        });
    return count;
  }

  // The steps that wait, and which of them is the first on the stack from `frame` on.
  struct Chain {
    std::vector<LoopLink> links;
    size_t from = 0;
  };
  Chain chain(size_t frame) const {
    Chain c;
    for (size_t i = 0; i < stack_.size(); i++) {
      const Frame& f = stack_[i];
      if (f.state != State::kWaiting || f.rule == nullptr) continue;
      const Frame* above = i == 0 ? nullptr : &stack_[i - 1];
      const bool is_next = above != nullptr && above->state == State::kWaiting &&
                           above->rule != nullptr && above->next == f.node;
      if (i < frame) c.from++;
      c.links.push_back({f.now, f.next, f.rule, !is_next});
    }
    return c;
  }

  // Leaves out the steps before the loop, but for those that led to it directly or by its rules:
  // it begins at a node of the graph.
  static void cut_front(Chain& c) {
    const std::span<const LoopLink> loop = std::span(c.links).subspan(c.from);
    const auto is_of_loop = [&](const Rule* rule) {
      return std::ranges::find(loop, rule, &LoopLink::rule) != loop.end();
    };
    size_t start = c.from;
    while (start > 0 && ((start < c.links.size() && !c.links[start].is_within) ||
                         is_of_loop(c.links[start - 1].rule))) {
      start--;
    }
    c.links.erase(c.links.begin(), c.links.begin() + ptrdiff_t(start));
    c.from -= start;
  }

  // `back` is needed for its own result: the frames from it to the top are the loop.
  [[noreturn]] void report_loop(UOp back) {
    size_t from = stack_.size();
    while (from > 0 && stack_[from - 1].node != back && stack_[from - 1].now != back) from--;
    from = from == 0 ? 0 : from - 1;
    // Reached through a source, what a rule made encloses `back`.
    const bool is_contained = std::ranges::any_of(
        std::span(stack_).subspan(from), [](const Frame& f) { return f.state == State::kSources; });
    Chain c = chain(from);
    cut_front(c);
    if (!is_contained) throw cycle_error(pass_name(), c.links, c.from, back);
    if (c.from + 1 == c.links.size()) unfold(c.links);
    throw growth_error(pass_name(), c.links);
  }

  // The last step, taken twice more: a rule replaced a node by something that contains it.
  static void unfold(std::vector<LoopLink>& links) {
    const LoopLink step = links.back();
    for (int i = 0; i < 2; i++) {
      const UOp term = links.back().after;
      const std::pair<UOp, UOp> pair{step.before, term};
      links.push_back({term, substitute(step.after, std::span(&pair, 1)), step.rule, false});
    }
  }

  [[noreturn]] void report_growth() {
    Chain c = chain(0);
    c.from = c.links.size() / 2;  // what never ends is at the top
    cut_front(c);
    throw growth_error(pass_name(), c.links);
  }

  const RuleSet& rules_;
  const RewriteOptions& options_;
  Arena& arena_;
  uint32_t first_new_;  // nodes from this id on were made by this rewrite
  size_t bytes_before_;
  NodeMap memo_;
  NodeMap sighted_;
  NodeMap met_;  // the number of the chain that met a node last
  std::vector<Frame> stack_;
  std::vector<UOp> srcs_;
  std::vector<RuleCount> counts_;
  size_t seen_ = 0;           // nodes from before, so far
  size_t waiting_ = 0;        // frames that wait
  uint64_t chain_ = 0;        // number of the present chain of waiting frames
  uint32_t chain_start_ = 0;  // nodes from this id on were made since it began
  size_t progress_ = 0;       // nodes from before it that it has met
  size_t patience_ = 0;       // how much longer than it should be it may become
};

}  // namespace

UOp graph_rewrite(UOp root, const RuleSet& rules, const RewriteOptions& options) {
  const uint64_t start = options.trace != nullptr ? now_ns() : 0;
  if (options.trace != nullptr) {
    const std::string_view name = options.pass.empty() ? rules.name() : options.pass;
    options.trace->passes.push_back({std::string(name), root, root, 0, {}});
  }
#ifdef WEFT_NO_STATISTICS  // only the benchmark that shows what counting costs
  const UOp result = Engine<Counting::kOff>(root, rules, options).run(root);
#else
  const UOp result = config().stats > 0 ? Engine<Counting::kOn>(root, rules, options).run(root)
                                        : Engine<Counting::kOff>(root, rules, options).run(root);
#endif
  if (options.trace != nullptr) {
    TracePass& pass = options.trace->passes.back();
    pass.after = result;
    pass.nanoseconds = now_ns() - start;
  }
  return result;
}

UOp run_passes(UOp root, std::span<const Pass> passes, void* context, Trace* trace,
               Verify verify_when) {
  for (const Pass& pass : passes) {
    root = graph_rewrite(root, *pass.rules,
                         {.order = pass.order,
                          .context = context,
                          .descend = pass.descend,
                          .trace = trace,
                          .pass = pass.name});
    const bool last = &pass == &passes.back();
    const bool due =
        verify_when == Verify::kEveryPass || (verify_when == Verify::kAtTheEnd && last);
    if (due && pass.stage) verify(root, *pass.stage, pass.name);
  }
  return root;
}

}  // namespace weft
