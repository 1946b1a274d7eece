// Each outermost END by itself: its body with SPECIALs for its ranges, and gates on its writes.
#include "codegen/gpudims.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/opt/loops.h"
#include "codegen/replace_ranges.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr size_t kDimensions = 3;

bool has_axis(UOp n, AxisType axis) { return n.is(Op::RANGE) && n.axis() == axis; }

std::vector<UOp> global_ranges(UOp effect) {
  std::vector<UOp> out;
  if (!effect.is(Op::END)) return out;
  for (UOp r : effect.srcs().subspan(1)) {
    if (has_axis(r, AxisType::kGlobal)) out.push_back(r);
  }
  return out;
}

UOp product_of_sizes(Arena& arena, std::span<const UOp> ranges) {
  UOp out = index_const(arena, 1);
  for (UOp r : ranges) out = out * r.src(0);
  return simplify(out);
}

// ---- threads

// Which dimension of a group each local range takes: ranges that stand in one another take
// different ones, the inner ones the lower.
class ThreadDimensions {
 public:
  ThreadDimensions(UOp sink, const Workgroups& groups) : arena_(sink.arena()) {
    const std::vector<UOp> order = toposort(sink);
    for (UOp n : order) {
      if (has_axis(n, AxisType::kLocal)) ranges_.push_back(n);
    }
    inside_.resize(ranges_.size(), std::vector<bool>(ranges_.size()));
    dimensions_.resize(ranges_.size());
    for (UOp n : order) note_nesting(n);
    for (bool is_new = true; is_new;) {  // the least dimension above all that stand inside
      is_new = false;
      for (size_t r = 0; r < ranges_.size(); r++) {
        size_t least = 0;
        for (size_t s = 0; s < ranges_.size(); s++) {
          if (inside_[r][s]) least = std::max(least, dimensions_[s] + 1);
        }
        if (least != dimensions_[r]) is_new = true;
        dimensions_[r] = least;
        if (least >= kDimensions)
          throw CompileError("[gpudims] more than 3 local loops are nested");
      }
    }
    for (size_t r = 0; r < ranges_.size(); r++) {
      int64_t& size = sizes_[dimensions_[r]];
      size = std::max(size, ranges_[r].src(0).const_int());
    }
    check_sizes(groups);
  }

  // What stands for the range in a thread; one past the end of a shorter range stays at its last
  // place.
  UOp place(UOp range) const {
    const size_t d = of(range);
    const int64_t size = range.src(0).const_int();
    const UOp thread = special_of(d);
    return size == sizes_[d] ? thread : min(thread, index_const(arena_, size - 1));
  }

  std::vector<std::pair<UOp, UOp>> places() const {
    std::vector<std::pair<UOp, UOp>> out;
    out.reserve(ranges_.size());
    for (UOp r : ranges_) out.emplace_back(r, place(r));
    return out;
  }

  // Which threads do what stands in these ranges; null when all do.
  UOp gate(std::span<const UOp> ranges) const {
    std::array<int64_t, kDimensions> covered{1, 1, 1};
    for (UOp r : ranges) {
      if (has_axis(r, AxisType::kLocal)) covered[of(r)] = r.src(0).const_int();
    }
    UOp out;
    for (size_t d = 0; d < kDimensions; d++) {
      if (covered[d] == sizes_[d]) continue;
      const UOp one = special_of(d) < covered[d];
      out = out ? out & one : one;
    }
    return out;
  }

 private:
  void check_sizes(const Workgroups& groups) const {
    int64_t threads = 1;
    for (size_t d = 0; d < kDimensions; d++) {
      if (sizes_[d] > groups.most_threads[d]) {
        throw CompileError(
            fmt::format("[gpudims] a group of {} x {} x {} threads has more than the {} "
                        "that the target has in dimension {}",
                        sizes_[0], sizes_[1], sizes_[2], groups.most_threads[d], d));
      }
      threads *= sizes_[d];
    }
    if (threads > int64_t(groups.threads)) {
      throw CompileError(
          fmt::format("[gpudims] a group of {} x {} x {} threads is more than the {} "
                      "that the target has",
                      sizes_[0], sizes_[1], sizes_[2], groups.threads));
    }
  }

  // n stands in local ranges, or closes them: those that it closes are the inner ones, the last
  // listed innermost.
  void note_nesting(UOp n) {
    const auto nest = [&](UOp outer, UOp inner) {
      if (outer != inner) inside_[index(outer)][index(inner)] = true;
    };
    if (!n.is(Op::END)) return;
    const std::span<const UOp> listed = n.srcs().subspan(1);
    for (size_t i = 0; i < listed.size(); i++) {
      if (!has_axis(listed[i], AxisType::kLocal)) continue;
      for (UOp r : ranges_of(n)) {
        if (has_axis(r, AxisType::kLocal)) nest(r, listed[i]);
      }
      for (size_t k = 0; k < i; k++) {
        if (has_axis(listed[k], AxisType::kLocal)) nest(listed[k], listed[i]);
      }
    }
  }

  size_t index(UOp range) const {
    return size_t(std::ranges::find(ranges_, range) - ranges_.begin());
  }
  size_t of(UOp range) const { return dimensions_[index(range)]; }
  UOp special_of(size_t d) const { return special(arena_, fmt::format("lidx{}", d), sizes_[d]); }

  Arena& arena_;
  std::vector<UOp> ranges_;
  std::vector<std::vector<bool>> inside_;  // [outer][inner]
  std::vector<size_t> dimensions_;
  std::array<int64_t, kDimensions> sizes_{1, 1, 1};
};

// ---- groups

// The groups of a launch, and the place of an END's ranges in each.
class Groups {
 public:
  Groups(UOp sink, const Workgroups& limits) : arena_(sink.arena()), limits_(limits) {
    for (UOp effect : sink.srcs()) lists_.push_back(global_ranges(effect));
    main_ = 0;
    for (size_t i = 1; i < lists_.size(); i++) {
      if (most(lists_[i]) > most(lists_[main_])) main_ = i;
    }
    if (lists_.empty()) return;
    const bool is_one_shape =
        std::ranges::all_of(lists_, [&](const auto& l) { return l == lists_[main_]; });
    if (is_one_shape && make_dimensions()) return;
    // All in one dimension.
    dimensions_.clear();
    UOp total = product_of_sizes(arena_, lists_[main_]);
    if (bounds(total).lo < 1) total = max(total, index_const(arena_, 1));  // others may have some
    const int64_t wide = limits_.most_groups[0];
    group_count_ = bounds(total).hi > wide ? index_const(arena_, wide) : total;
    group_ = special(arena_, "gidx0", group_count_);
  }

  // The body of effect i of the sink in each group: ranges to replace, and a loop around it.
  struct Body {
    std::vector<std::pair<UOp, UOp>> places;
    UOp loop;  // null: there is one place for each group
    UOp gate;  // of its writes; null: all groups do them
  };
  Body body(size_t i) {
    Body out;
    if (!dimensions_.empty() || lists_[i].empty()) {
      out.places = dimensions_;
      if (lists_[i].empty() && group_) out.gate = group_ < 1;  // done by the first group alone
      return out;
    }
    const UOp total = product_of_sizes(arena_, lists_[i]);
    UOp at = group_;
    if (total != group_count_) {
      out.loop = step_loop(i, total);
      at = out.loop * group_count_ + group_;
    }
    for (size_t k = lists_[i].size(); k-- > 0;) {
      const UOp r = lists_[i][k];
      out.places.emplace_back(r, k == 0 ? at : simplify(at % r.src(0)));
      at = simplify(at / r.src(0));
    }
    return out;
  }

 private:
  // gidx, gidx + groups, ... below `total`: one loop for all effects in the same ranges, which the
  // copies of an expanded one are.
  UOp step_loop(size_t i, UOp total) {
    steps_.resize(lists_.size());
    const auto first = size_t(std::ranges::find(lists_, lists_[i]) - lists_.begin());
    if (!steps_[first]) {
      const UOp size = (total - group_ + (group_count_ - 1)) / group_count_;
      steps_[first] = arena_.make(Op::RANGE, dtypes::index, {simplify(size)},
                                  Arg::range(arena_.fresh_id(), AxisType::kLoop));
    }
    return steps_[first];
  }

  static double most(std::span<const UOp> ranges) {
    double out = 1;
    for (UOp r : ranges) out *= double(bounds(r.src(0)).hi);
    return out;
  }

  // The last range is dimension 0; those that are too many share the last dimension. False when one
  // is too large for the target.
  bool make_dimensions() {
    const std::vector<UOp>& ranges = lists_[main_];
    for (size_t d = 0; d < kDimensions && d < ranges.size(); d++) {
      const size_t last = ranges.size() - 1 - d;
      const bool is_shared = d + 1 == kDimensions && last > 0;
      const std::span<const UOp> here =
          is_shared ? std::span(ranges).first(last + 1) : std::span(ranges).subspan(last, 1);
      const UOp size = product_of_sizes(arena_, here);
      if (bounds(size).hi > limits_.most_groups[d]) return false;
      UOp at = special(arena_, fmt::format("gidx{}", d), size);
      for (size_t k = here.size(); k-- > 0;) {
        dimensions_.emplace_back(here[k], k == 0 ? at : simplify(at % here[k].src(0)));
        at = simplify(at / here[k].src(0));
      }
    }
    return true;
  }

  Arena& arena_;
  const Workgroups& limits_;
  std::vector<std::vector<UOp>> lists_;  // of each effect
  size_t main_ = 0;
  std::vector<std::pair<UOp, UOp>> dimensions_;  // where all ENDs have the same loops
  UOp group_, group_count_;
  std::vector<UOp> steps_;  // loops over places, by the first effect in the same ranges
};

// ---- the kernel

bool waits_for_others(UOp sink) {
  if (runs_in_order(sink)) return true;
  return std::ranges::any_of(sink.srcs(), [&](UOp effect) {
    const std::vector<UOp> below = toposort(effect.src(0));
    return std::ranges::any_of(
        below, [&](UOp n) { return std::ranges::find(sink.srcs(), n) != sink.srcs().end(); });
  });
}

// The graph with a gate on its writes to memory: gate_of(STORE), or null.
template <class GateOf>
UOp with_gates(UOp root, GateOf&& gate_of) {
  return rebuild(root, [&](UOp n, std::span<const UOp> srcs) {
    const UOp made = n.arena().with_srcs(n, srcs);
    if (!n.is(Op::STORE) || place_of(n.src(0)).base.is(Op::DEFINE_REG)) return made;
    const UOp gate = gate_of(n);
    if (!gate) return made;
    std::vector<UOp> all(srcs.begin(), srcs.end());
    if (all.size() == 3) {
      all[2] = all[2] & gate;
    } else {
      all.push_back(gate);
    }
    return n.arena().with_srcs(n, all);
  });
}

// Without the ranges that are no loops any more.
UOp without_local_ends(UOp sink) {
  return rebuild(sink, [&](UOp n, std::span<const UOp> srcs) {
    if (!n.is(Op::END) && !n.is(Op::AFTER)) return n.arena().with_srcs(n, srcs);
    std::vector<UOp> left{srcs[0]};
    for (size_t i = 1; i < srcs.size(); i++) {
      if (!has_axis(n.src(i), AxisType::kLocal)) left.push_back(srcs[i]);
    }
    return left.size() == 1 ? left[0] : n.arena().with_srcs(n, left);
  });
}

UOp inside_of(UOp effect) { return effect.is(Op::END) ? effect.src(0) : effect; }

// What stands in the ENDs of the sink, at its places. Those at the same places share registers and
// local memory; others have their own, even in ranges that both have.
std::vector<UOp> at_places(UOp sink, std::span<const Groups::Body> bodies) {
  std::vector<UOp> out(bodies.size());
  Registers registers = Registers::kSame;
  for (size_t i = 0; i < bodies.size(); i++) {
    if (out[i]) continue;
    std::vector<UOp> alike;
    for (size_t k = i; k < bodies.size(); k++) {
      if (bodies[k].places == bodies[i].places) alike.push_back(inside_of(sink.src(k)));
    }
    const UOp all = sink.arena().make(Op::SINK, dtypes::void_, alike);
    const UOp made = replace_ranges(all, bodies[i].places, registers);
    size_t next = 0;
    for (size_t k = i; k < bodies.size(); k++) {
      if (bodies[k].places == bodies[i].places) out[k] = made.src(next++);
    }
    registers = Registers::kOwn;
  }
  return out;
}

// `made`, with the loops of the effect that are left around it: at the places of its body, too, as
// the size of a loop may change with a group's place.
UOp in_groups(UOp effect, UOp made, const Groups::Body& body) {
  if (body.gate) {
    made = with_gates(made, [&](UOp store) {
      return place_of(store.src(0)).base.is(Op::DEFINE_LOCAL) ? UOp() : body.gate;
    });
  }
  std::vector<UOp> srcs{made};
  if (body.loop) srcs.push_back(body.loop);
  if (effect.is(Op::END)) {
    for (UOp r : effect.srcs().subspan(1)) {
      if (!has_axis(r, AxisType::kGlobal)) srcs.push_back(replace_ranges(r, body.places));
    }
  }
  if (srcs.size() == 1) return made;
  return effect.arena().make(Op::END, dtypes::void_, srcs);
}

// A kernel that names the indices of the hardware itself: its loops are loops of each thread.
bool names_threads(UOp sink) {
  const std::vector<UOp> order = toposort(sink);
  return std::ranges::any_of(order, [](UOp n) { return n.is(Op::SPECIAL); });
}

}  // namespace

UOp gpudims(UOp sink, const Target& target) {
  if (target.groups.threads == 0 || waits_for_others(sink) || names_threads(sink)) return sink;
  const ThreadDimensions threads(sink, target.groups);
  sink = with_gates(sink, [&](UOp store) { return threads.gate(ranges_of(store)); });
  Groups groups(sink, target.groups);
  std::vector<Groups::Body> bodies;
  bodies.reserve(sink.src_count());
  for (size_t i = 0; i < sink.src_count(); i++) bodies.push_back(groups.body(i));
  std::vector<UOp> effects = at_places(sink, bodies);
  for (size_t i = 0; i < effects.size(); i++) {
    effects[i] = in_groups(sink.src(i), effects[i], bodies[i]);
  }
  sink = sink.arena().with_srcs(sink, effects);
  const std::vector<std::pair<UOp, UOp>> places = threads.places();
  sink = without_local_ends(sink);
  return places.empty() ? sink : substitute(sink, places);
}

}  // namespace weft
