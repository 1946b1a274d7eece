// Sums of products get the tile that costs least, a transposition tiles for the cache, all others
// vectors where memory is read in order. Each step is tried on the kernel as the steps before have
// left it.
#include "codegen/opt/choose_opts.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "codegen/opt/block_rows.h"
#include "codegen/opt/choose_block_opts.h"
#include "codegen/opt/choose_group_opts.h"
#include "codegen/opt/kernel_loops.h"
#include "codegen/opt/loop_facts.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "codegen/opt/tile_products.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr int64_t kCacheTile = 64;    // of a transposition, elements on each axis
constexpr int64_t kGroups = 4;        // accumulators that hide an addition's latency
constexpr int64_t kShortVectors = 8;  // vectors of a loop that is short
constexpr int64_t kNearStep = 4;      // of lanes that share cache lines
constexpr int64_t kComputed = 8;      // nodes for each lane that is read alone
constexpr int64_t kCopyNodes = 160;   // nodes of a body that are worth copying

class Chooser : KernelLoops {
 public:
  using KernelLoops::KernelLoops;

  OptList run() {
    if (parallel().empty() && reductions().empty()) return {};
    split_groups();
    merge_loops();
    if (tile_products(*this)) {
    } else if (target().vector_bytes > 0) {
      const UOp along = best_vector_range();
      if (!along || !tile_transposition(along)) {
        if (!along) run_lines_together();
        thread(along);
        if (along) vectorize_loop(along.range_id());
      }
      vectorize_reductions();
    }
    thread({});
    return opts();
  }

 private:
  // Products that are read by the quotient of a loop, as those of groups are: the loop becomes the
  // two that it stands for, so that each factor depends on those of its own alone.
  void split_groups() {
    if (std::ranges::none_of(order(), is_sum_of_products)) return;
    const auto quotient = [&](UOp n) {
      if (!n.is(Op::IDIV) || !n.src(0).is(Op::RANGE) || !n.src(1).is_const()) return false;
      const UOp r = n.src(0);
      return r.axis() == AxisType::kGlobal && r.src(0).is_const() &&
             most_places(r) % n.src(1).const_int() == 0;
    };
    for (auto at = std::ranges::find_if(order(), quotient); at != order().end();
         at = std::ranges::find_if(order(), quotient)) {
      if (!attempt(OptKind::kTile, at->src(0).range_id(), at->src(1).const_int())) return;
    }
  }

  // The axes of reductions as memory has them: loops that are walked as one are one, so that an
  // axis that is long in memory is not taken for several short ones.
  void merge_loops() {
    if (reductions().empty()) {
      while (merge_short_loop()) {
      }
      return;
    }
    while (merge_one_of(parallel()) || merge_one_of(reductions())) {
    }
  }
  // Of elements: the innermost loop, where it is not much longer than a vector.
  bool merge_short_loop() {
    const std::vector<UOp> loops = loops_of_end();
    if (loops.size() < 2 || target().vector_bytes == 0) return false;
    const UOp inner = loops.back(), outer = loops[loops.size() - 2];
    if (!inner.src(0).is_const() || most_places(inner) >= kShortVectors * lanes_in(inner))
      return false;
    return attempt(OptKind::kMerge, outer.range_id(), inner.range_id());
  }
  bool merge_one_of(const std::vector<UOp>& loops) {
    for (UOp outer : loops) {
      for (UOp inner : loops) {
        if (outer != inner && attempt(OptKind::kMerge, outer.range_id(), inner.range_id()))
          return true;  // the list is another one
      }
    }
    return false;
  }

  // ---- transpositions

  // One memory is read in order along one loop, another along another one.
  bool tile_transposition(UOp along) {
    if (!reductions().empty()) return false;
    for (UOp n : accesses()) {
      if (step_of(n, along) == 1 || step_of(n, along) == 0) continue;
      for (UOp other : parallel()) {
        if (other == along || step_of(n, other) != 1) continue;
        const int64_t lanes = lanes_in(along);
        if (most_places(other) < lanes || most_places(along) < lanes) continue;
        const int64_t inner = cache_tile(other), innermost = cache_tile(along);
        // A block that is as high as it is wide is turned over in registers.
        if (attempt(OptKind::kVector, innermost, lanes)) attempt(OptKind::kUpcast, inner, lanes);
        return true;
      }
    }
    return false;
  }

  // The loop inside of a tile; the loop itself where it is short.
  int64_t cache_tile(UOp r) {
    const int64_t id = r.range_id(), inner = free_range_id(sink());
    if (most_places(r) < 2 * kCacheTile || !attempt(OptKind::kTile, id, kCacheTile)) return id;
    return inner;
  }

  // ---- vectors

  // Memory that is read and written in order along the loop, less that which is not, each access as
  // often as it runs.
  double order_along(UOp r) const {
    double score = 0;
    for (UOp n : accesses()) {
      const std::optional<int64_t> step = step_of(n, r);
      if (step == 0 || !is_in_scope(r, n)) continue;
      const bool is_write = n.is(Op::STORE);  // lanes can be read one by one, but hardly written
      const bool is_near = step && std::abs(*step) <= kNearStep && !is_write;
      score += places_of(n) * (step == 1 ? 2 + int(is_write) : is_near ? 1 : -1);
    }
    return score;
  }

  UOp best_vector_range() const {
    UOp best;
    double most = 0;
    for (UOp r : parallel()) {
      if (most_places(r) < 4) continue;
      const double score = order_along(r);
      // Of equals, the longer one.
      if (score > most || (best && score == most && most_places(r) > most_places(best)))
        best = r, most = score;
    }
    return best || !reductions().empty() ? best : best_computed_range();
  }

  // Lanes that are read one by one, but written in order, with much to compute for each.
  UOp best_computed_range() const {
    UOp best;
    for (UOp r : parallel()) {
      if (most_places(r) < kLeastLanes || !writes_in_order(r)) continue;
      const int64_t reads = std::ranges::count_if(accesses(), [&](UOp n) {
        return n.is(Op::LOAD) && is_in_scope(r, n) && step_of(n, r) != 1;
      });
      const bool is_worth_it = nodes_in(r) >= kComputed * reads;
      if (is_worth_it && (!best || most_places(r) > most_places(best))) best = r;
    }
    return best;
  }

  void vectorize_loop(int64_t id) {
    const UOp r = range(id);
    if (!r) return;
    int64_t lanes = lanes_in(r);
    // A rest that is done one by one would be much of a loop around sums.
    const int64_t places = most_places(r), rest = places % lanes;
    if (r.src(0).is_const() && places < kShortVectors * lanes * rest) {
      lanes = lanes_for(r);
      if (places % lanes != 0) attempt(OptKind::kPad, id, lanes);
    }
    while (lanes > most_places(range(id))) lanes /= 2;
    if (lanes < 2 || !attempt(OptKind::kVector, id, lanes)) return;
    const UOp left = range(id);
    if (!left) return;
    const int64_t copies = std::min<int64_t>(4, kCopyNodes / std::max<int64_t>(1, nodes_in(left)));
    if (copies >= 2 && share_across_lines(id, copies)) return;
    const int64_t vectors = most_places(left);
    const bool is_all = !reductions().empty() && left.src(0).is_const() && vectors <= copies;
    if (is_all && vectors > 1) {
      attempt(OptKind::kUpcast, id, vectors);
    } else if (copies >= 2 && vectors >= 2 * copies) {
      attempt(OptKind::kUpcast, id, copies);
    }
  }

  // Lines side by side, where they have much of the work in common: that is done once for them.
  bool share_across_lines(int64_t id, int64_t copies) {
    if (!reductions().empty()) return false;
    const UOp along = range(id);
    UOp best;
    int64_t most = 0;
    for (UOp r : parallel()) {
      if (r == along || most_places(r) < 2 * copies) continue;
      const int64_t shared = std::ranges::count_if(order(), [&](UOp n) {
        return is_in_scope(along, n) && !is_in_scope(r, n) && !n.dtype().is_index() &&
               !n.dtype().is_pointer() && !n.dtype().is_void();
      });
      if (shared > most) best = r, most = shared;
    }
    if (!best || 2 * most < nodes_in(along)) return false;
    return attempt(OptKind::kUpcast, best.range_id(), copies);
  }

  // Where a register is carried from one iteration to the next, each waits for the one before:
  // those of several lines do not.
  void run_lines_together() {
    const auto is_carried = [](UOp n) {
      return n.is(Op::AFTER) && n.src(0).is(Op::DEFINE_REG) &&
             std::ranges::any_of(n.srcs(), [](UOp s) { return s.is(Op::STORE); }) &&
             std::ranges::any_of(n.srcs(), [](UOp s) { return s.is(Op::RANGE); });
    };
    const auto carried = std::ranges::find_if(order(), is_carried);
    if (carried == order().end() || !reductions().empty()) return;
    UOp lines;  // the innermost loop around it
    for (UOp r : loops_of_end()) {
      if (r.axis() == AxisType::kGlobal && is_in_scope(r, *carried)) lines = r;
    }
    if (!lines || nodes_in(lines) > kCopyNodes / kGroups) return;
    if (most_places(lines) >= 2 * kGroups) attempt(OptKind::kUpcast, lines.range_id(), kGroups);
  }

  void vectorize_reductions() {
    std::vector<int64_t> ids;
    ids.reserve(reductions().size());
    for (UOp r : reductions()) ids.push_back(r.range_id());
    for (const int64_t id : ids) {
      const UOp r = range(id);
      if (!r || order_along(r) <= 0) continue;
      int64_t lanes = lanes_in(r);
      while (lanes > most_places(r)) lanes /= 2;
      if (lanes < 2 || !attempt(OptKind::kVector, id, lanes)) continue;
      const UOp left = range(id);
      if (left && most_places(left) >= 2 * kGroups) attempt(OptKind::kGroup, id, kGroups);
    }
  }
};

}  // namespace

OptList choose_opts(UOp sink, const Target& target) {
  // A loop that never runs needs none, and who names hardware's indices has made the choice.
  const std::vector<UOp> order = toposort(sink);
  const auto is_left_alone = [](UOp n) {
    return n.is(Op::SPECIAL) ||
           (n.is(Op::RANGE) && n.src(0).is_const() && n.src(0).const_int() < 1);
  };
  if (std::ranges::any_of(order, is_left_alone)) return {};
  if (target.groups.threads > 0) {
    return runs_in_order(sink) ? OptList{} : choose_group_opts(sink, target);
  }
  return carries_local_memory(sink) ? choose_block_opts(sink, target) : Chooser(sink, target).run();
}

}  // namespace weft
