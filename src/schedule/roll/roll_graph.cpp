// Finding runs of steps, and building their loops.
#include "schedule/roll/roll_graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "schedule/rangeify/index_math.h"
#include "schedule/rangeify/movement.h"
#include "schedule/roll/progression.h"
#include "schedule/roll/template_match.h"
#include "symbolic/linear.h"

namespace weft {
namespace {

constexpr size_t kLeastWrites = 4;  // fewer are left as they are
constexpr size_t kLeastChain = 64;  // operations one after the other
constexpr size_t kLongestPeriod = 8;

bool is_elementwise_step(UOp n) { return is_elementwise(n.op()) && !n.dtype().is_index(); }

class Roller {
 public:
  Roller(Arena& arena, const std::string& device) : arena_(arena), device_(device) {}

  RolledGraph run(UOp sink, std::span<const UOp> order) {
    const bool has_chains = std::any_of(order.begin(), order.end(), [](UOp n) {
      return n.is(Op::AFTER) && n.src_count() > kLeastWrites;
    });
    if (!has_chains) return {roll_chains(sink, order), std::move(tables_)};
    sink = roll_writes(sink);
    sink = roll_chains(sink, toposort(sink));
    return {sink, std::move(tables_)};
  }

 private:
  // ---- writes

  UOp roll_writes(UOp sink) {
    return rebuild(sink, [&](UOp n, std::vector<UOp>& srcs) {
      const UOp result = arena_.with_srcs(n, srcs);
      return n.is(Op::AFTER) && n.src_count() > kLeastWrites ? rolled_version(result) : result;
    });
  }

  UOp rolled_version(UOp after) {
    const std::span<const UOp> effects = after.srcs().subspan(1);
    const auto step = [&](size_t i) { return Step{effects[i].src(0), effects[i].src(1)}; };
    const auto is_plain = [&](size_t i) {
      return effects[i].is(Op::STORE) && effects[i].src_count() == 2 && !effects[i].accumulates() &&
             !effects[i].src(0).is(Op::INDEX);
    };
    std::vector<UOp> srcs{after.src(0)};
    for (size_t i = 0; i < effects.size();) {
      std::optional<StepTemplate> run;
      size_t end = i + 2;
      if (end <= effects.size() && is_plain(i) && is_plain(i + 1)) {
        run = StepTemplate::make(step(i), step(i + 1));
      }
      const auto is_right = [&] {
        return !run->initial() ||
               is_any_order_right(*run, effects[i].src(0), effects[i + 1].src(0));
      };
      if (run && !is_right()) run.reset();
      while (run && end < effects.size() && is_plain(end) && run->add(step(end))) end++;
      if (!run) {
        srcs.push_back(effects[i++]);
      } else if (run->steps() < kLeastWrites || !is_right()) {
        srcs.insert(srcs.end(), effects.begin() + ptrdiff_t(i), effects.begin() + ptrdiff_t(end));
        i = end;
      } else {
        srcs.push_back(loop_of_writes(*run));
        i = end;
      }
    }
    return arena_.with_srcs(after, srcs);
  }

  UOp loop_of_writes(const StepTemplate& run) {
    const UOp r = range(arena_, int64_t(run.steps()), arena_.fresh_id(), AxisType::kLoop);
    if (!run.initial()) {
      const Step body = run.body(r, {}, device_, tables_);
      return close(arena_.make(Op::STORE, dtypes::void_, {body.target, body.value}), r);
    }
    const Carried c = carried(run.initial(), r);
    const Step body = run.body(r, c.inside, device_, tables_);
    const UOp held = arena_.make(Op::STORE, c.reg.dtype(), {c.inside, body.value});
    const UOp value = arena_.make(Op::AFTER, c.reg.dtype(), {c.reg, held});
    return close(arena_.make(Op::STORE, dtypes::void_, {body.target, value}), r);
  }

  UOp close(UOp effect, UOp r) { return arena_.make(Op::END, dtypes::void_, {effect, r}); }

  struct Carried {
    UOp reg, inside;  // the register, and what it holds at the start of an iteration
  };
  Carried carried(UOp initial, UOp r) {
    const UOp reg = define_reg(arena_, initial.dtype(), arena_.fresh_id());
    const UOp start = arena_.make(Op::STORE, reg.dtype(), {reg, initial});
    return {reg, arena_.make(Op::AFTER, reg.dtype(), {reg, start, r})};
  }

  // With a register, all steps run for one element of the writes, then for the next: right where
  // writes of different steps touch different elements, or have one element each.
  bool is_any_order_right(const StepTemplate& run, UOp first, UOp second) {
    IndexList at;
    for (const Dim d : shape_of(first)) {
      at.push_back(d.is(1) ? index_const(arena_, 0) : range(arena_, d, arena_.fresh_id()));
    }
    const std::optional<LinearSum> a = offset_of(first, at), b = offset_of(second, at);
    if (!a || !b || a->terms.size() != b->terms.size()) return false;
    int64_t reach = 1;
    for (size_t i = 0; i < a->terms.size(); i++) {
      const Term &t = a->terms[i], &u = b->terms[i];
      if (t.base != u.base || t.coefficient != u.coefficient) return false;
      if (!t.base.is(Op::RANGE) || !t.base.src(0).is_const()) return false;
      reach += std::abs(t.coefficient) * (t.base.src(0).const_int() - 1);
    }
    return reach == 1 || (run.is_regular() && std::abs(b->constant - a->constant) >= reach);
  }
  static std::optional<LinearSum> offset_of(UOp target, const IndexList& at) {
    const Access to = follow_views(target, at);
    Arena& arena = target.arena();
    if (to.flat) return linear_sum(to.flat);
    return linear_sum(simplify_index(flat_index(arena, shape_of(to.base), to.at)));
  }

  // ---- arithmetic

  UOp roll_chains(UOp sink, std::span<const UOp> order) {
    NodeMap depths(arena_);
    bool is_any = false;
    for (UOp n : order) {
      if (!is_elementwise_step(n)) continue;
      uint64_t depth = 0;
      for (UOp s : n.srcs()) depth = std::max(depth, depths.number(s));
      depths.put_number(n, depth + 1);
      is_any = is_any || depth + 1 >= kLeastChain;
    }
    if (!is_any) return sink;
    NodeMap uses(arena_), users(arena_), seen(arena_);
    for (UOp n : order) {
      for (UOp s : n.srcs()) {
        uses.put_number(s, uses.number(s) + 1);
        users.put(s, n);
      }
    }
    std::vector<std::pair<UOp, UOp>> replaced;
    for (size_t i = order.size(); i-- > 0;) {
      const UOp top = order[i];
      if (depths.number(top) < kLeastChain || seen.has(top)) continue;
      std::vector<UOp> spine = spine_of(top, depths, uses, seen);
      std::reverse(spine.begin(), spine.end());
      const auto is_written = [&](UOp n) {
        return uses.number(n) == 1 && is_stored_by(users.get(n), n);
      };
      roll_spine(spine, is_written, replaced);
    }
    return replaced.empty() ? sink : substitute(sink, replaced);
  }

  // From the top down, as long as each value has one user.
  std::vector<UOp> spine_of(UOp top, const NodeMap& depths, const NodeMap& uses, NodeMap& seen) {
    std::vector<UOp> spine;
    for (UOp n = top; n;) {
      spine.push_back(n);
      seen.put_number(n, 1);
      UOp deepest;
      for (UOp s : n.srcs()) {
        if (!depths.has(s) || uses.number(s) > 1 || seen.has(s)) continue;
        if (!deepest || depths.number(s) > depths.number(deepest)) deepest = s;
      }
      n = deepest;
    }
    return spine;
  }

  static bool is_stored_by(UOp user, UOp value) {
    return user.is(Op::CONTIGUOUS) || (user.is(Op::STORE) && user.src(1) == value);
  }

  // Steps of `period` operations each, as many as match. A loop with a register cannot be computed
  // again at other indices: its result is stored, if what it is used by does not do that.
  template <class IsWritten>
  void roll_spine(std::span<const UOp> spine, const IsWritten& is_written,
                  std::vector<std::pair<UOp, UOp>>& replaced) {
    for (size_t start = 0; start + kLeastChain <= spine.size();) {
      std::optional<StepTemplate> best;
      size_t best_end = 0;
      for (size_t period = 1; period <= kLongestPeriod; period++) {
        if (start + 4 * period >= spine.size()) break;
        const auto step = [&](size_t k) { return Step{{}, spine[start + k * period]}; };
        std::optional<StepTemplate> run = StepTemplate::make(step(0), step(1));
        size_t k = 2;
        while (run && start + k * period < spine.size() && run->add(step(k))) k++;
        if (run && run->steps() * period >= kLeastChain && run->steps() >= 4) {
          best = std::move(run);
          best_end = start + (k - 1) * period;
          break;
        }
      }
      if (!best) {
        start++;
        if (start > kLongestPeriod) return;  // no run begins near the start: not a loop
        continue;
      }
      UOp initial = best->initial();
      if (!replaced.empty()) initial = substitute(initial, replaced);
      const UOp r = range(arena_, int64_t(best->steps()), arena_.fresh_id(), AxisType::kLoop);
      const Carried c = carried(initial, r);
      const Step body = best->body(r, c.inside, device_, tables_);
      const UOp held = arena_.make(Op::STORE, c.reg.dtype(), {c.inside, body.value});
      const UOp value = arena_.make(Op::AFTER, c.reg.dtype(),
                                    {c.reg, arena_.make(Op::END, dtypes::void_, {held, r})});
      const UOp top = spine[best_end];
      UOp result = shaped(value, top);
      if (!is_written(top)) result = arena_.make(Op::CONTIGUOUS, result.dtype(), {result});
      replaced.emplace_back(top, result);
      start = best_end + 1;
    }
  }

  // A register has no shape: it stands for an element of `like`.
  UOp shaped(UOp reg, UOp like) {
    const Shape shape = shape_of(like);
    if (shape.empty()) return reg;
    std::vector<UOp> ones{reg}, sizes;
    for (size_t i = 0; i < shape.size(); i++) ones.push_back(index_const(arena_, 1));
    sizes.push_back(arena_.make(Op::RESHAPE, reg.dtype(), ones));
    for (const Dim d : shape) sizes.push_back(d.as_uop(arena_));
    return arena_.make(Op::EXPAND, reg.dtype(), sizes);
  }

  Arena& arena_;
  std::string device_;
  Tables tables_;
};

}  // namespace

RolledGraph roll_graph(UOp sink, std::span<const UOp> order, const std::string& device) {
  return Roller(sink.arena(), device).run(sink, order);
}

}  // namespace weft
