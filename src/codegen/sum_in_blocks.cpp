// First it is decided how each loop is cut, then the graph is made anew in one walk.
#include "codegen/sum_in_blocks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codegen/opt/loops.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr int64_t kMost = 1LL << 40;  // steps of a loop whose size is not known
constexpr int64_t kOuterBlock = 8;    // sums of blocks in a row: these are few
constexpr int64_t kGroupCopies = 8;   // sums of a workgroup's thread that are summed in blocks

bool is_float_sum(UOp n) {
  return n.is(Op::REDUCE) && n.arg_op() == Op::ADD && n.dtype().is_float();
}

int64_t most_steps(UOp range) { return std::min(bounds(range.src(0)).hi, kMost); }

// Steps of a block of at most `room` of them: a divisor of the loop's if one is near.
int64_t piece_of(int64_t steps, int64_t room, bool is_exact) {
  for (int64_t piece = room; is_exact && 2 * piece > room; piece--) {
    if (steps % piece == 0) return piece;
  }
  const int64_t blocks = (steps + room - 1) / room;
  return (steps + blocks - 1) / blocks;
}

// Counts the additions in a row of a sum, loop by loop, inner ones first.
class Level {
 public:
  explicit Level(int64_t block) : block_(block) {}

  int64_t room() const { return block_ / steps_; }
  // Whether a part of a loop is worth it.
  bool has_room() const { return room() >= std::max<int64_t>(2, block_ / 8); }
  bool takes(int64_t steps) const { return steps <= room(); }
  void take(int64_t steps) { steps_ *= steps; }
  void close() {
    steps_ = 1;
    block_ = std::min(block_, kOuterBlock);
  }

 private:
  int64_t block_, steps_ = 1;
};

class Blocks {
 public:
  Blocks(UOp sink, const Target& target)
      : arena_(sink.arena()), target_(target), next_id_(free_range_id(sink)) {
    const std::vector<UOp> order = toposort(sink);
    for (UOp n : order) {
      if (!n.is(Op::RANGE)) continue;
      for (UOp r : ranges_of(n.src(0))) sizes_of_others_.insert(r);
    }
    for (UOp n : order) {
      if (is_float_sum(n)) give_block(n);
    }
    for (UOp n : order) {
      if (is_float_sum(n)) cut_loops_of(n);
    }
  }

  UOp in(UOp sink) {
    if (!has_levels_) return sink;
    return rebuild(sink, [&](UOp n, std::span<const UOp> srcs) {
      if (n.is(Op::RANGE)) return place_in(n, srcs[0]);
      const UOp made = with_loops(n, srcs);
      return is_float_sum(made) ? in_levels(made, block_of(n)) : made;
    });
  }

 private:
  struct Cut {
    int64_t block = 1;              // additions in a row: the most of all sums over it
    std::vector<int64_t> pieces{};  // steps of inner loops, the innermost first
    std::vector<UOp> loops{};       // that stand for it, the outermost first
    bool is_done = false;           // its pieces are what they will be
  };

  // ---- sizes

  // Additions in a row of a sum, by the registers that all its copies take.
  int64_t own_block(UOp sum) const {
    int64_t copies = 1, lanes = 1;
    for (const std::span<const UOp> ranges : {ranges_of(sum), sum.srcs().subspan(1)}) {
      for (UOp r : ranges) {
        if (!r.is(Op::RANGE) || !r.src(0).is_const()) continue;
        const int64_t size = r.src(0).const_int();
        if (r.axis() == AxisType::kLane) lanes *= size;
        if (r.axis() == AxisType::kUpcast || r.axis() == AxisType::kGroupReduce) copies *= size;
      }
    }
    if (target_.groups.threads > 0)
      return copies * lanes > kGroupCopies ? kMost : target_.sum_block;
    const bool is_held = 3 * copies <= int64_t(target_.vector_registers);
    return is_held ? target_.sum_block : target_.long_sum_block;
  }

  // The rest of a loop that is done in copies has its blocks, so that both give the same bits.
  void give_block(UOp sum) {
    const int64_t block = own_block(sum);
    for (UOp r : sum.srcs().subspan(1)) {
      if (is_loop(r)) cuts_[r].block = std::max(cuts_[r].block, block);
    }
  }

  int64_t block_of(UOp sum) const {
    int64_t block = 1;
    for (UOp r : sum.srcs().subspan(1)) {
      if (is_loop(r)) block = std::max(block, cuts_.at(r).block);
    }
    return block;
  }

  // The level of what is inside of all loops.
  static Level innermost(UOp sum, int64_t block) {
    Level level(block);
    for (UOp r : sum.srcs().subspan(1)) {
      if (r.is(Op::RANGE) && r.axis() == AxisType::kUnroll && level.takes(most_steps(r)))
        level.take(most_steps(r));
    }
    return level;
  }

  // Not one that the sizes of other loops depend on.
  bool is_loop(UOp r) const {
    return r.is(Op::RANGE) && r.axis() == AxisType::kReduce && !sizes_of_others_.contains(r);
  }

  void cut_loops_of(UOp sum) {
    Level level = innermost(sum, block_of(sum));
    for (UOp r : sum.srcs().subspan(1) | std::views::reverse) {
      if (!is_loop(r)) continue;
      auto& [block, pieces, loops, is_done] = cuts_.at(r);
      const bool is_new = !std::exchange(is_done, true);
      int64_t left = most_steps(r);
      for (const int64_t piece : pieces) {  // of another sum
        if (!level.takes(piece)) level.close();
        level.take(piece);
        left = (left + piece - 1) / piece;
      }
      while (!level.takes(left)) {
        has_levels_ = true;
        if (is_new && level.has_room()) {
          pieces.push_back(piece_of(left, level.room(), r.src(0).is_const()));
          left = (left + pieces.back() - 1) / pieces.back();
        } else if (!is_new) {
          left = 1;
        }
        level.close();
      }
      level.take(left);
    }
  }

  // ---- the graph

  // The place of a loop that is cut: of its blocks, and in a block.
  UOp place_in(UOp range, UOp size) {
    const UOp same = arena_.with_srcs(range, std::span(&size, 1));
    const auto found = cuts_.find(range);
    if (found == cuts_.end() || found->second.pieces.empty()) return same;
    const std::vector<int64_t>& pieces = found->second.pieces;
    std::vector<UOp>& loops = found->second.loops;
    std::vector<UOp> sizes{size};
    for (const int64_t piece : pieces) {
      sizes.push_back(simplify((sizes.back() + (piece - 1)) / index_const(arena_, piece)));
    }
    UOp place = arena_.make(Op::RANGE, range.dtype(), {sizes.back()},
                            Arg::range(range.range_id(), range.axis()));
    loops.push_back(place);
    for (size_t i = pieces.size(); i-- > 0;) {
      const UOp piece = index_const(arena_, pieces[i]), first = place * piece;
      const UOp rest = simplify(sizes[i] % piece);
      const bool is_even = rest.is_const() && rest.const_int() == 0;
      const UOp steps = is_even ? piece : min(piece, sizes[i] - first);
      loops.push_back(
          arena_.make(Op::RANGE, range.dtype(), {steps}, Arg::range(next_id_++, range.axis())));
      place = first + loops.back();
    }
    return place;
  }

  // What closes or waits for a loop that is cut does so for all of its loops.
  UOp with_loops(UOp n, std::span<const UOp> srcs) const {
    if (!n.is(Op::REDUCE) && !n.is(Op::END) && !n.is(Op::AFTER)) return arena_.with_srcs(n, srcs);
    std::vector<UOp> all{srcs[0]};
    for (size_t i = 1; i < srcs.size(); i++) {
      const auto found = cuts_.find(n.src(i));
      if (found == cuts_.end() || found->second.loops.empty()) {
        all.push_back(srcs[i]);
      } else {
        all.insert(all.end(), found->second.loops.begin(), found->second.loops.end());
      }
    }
    return arena_.with_srcs(n, all);
  }

  // A sum for each level; lanes, copies and threads are summed in the outermost one.
  UOp in_levels(UOp sum, int64_t block) const {
    Level level = innermost(sum, block);
    std::vector<UOp> inner, outer;
    for (UOp r : sum.srcs().subspan(1)) {
      const bool is_unrolled = r.is(Op::RANGE) && r.axis() == AxisType::kUnroll;
      if (!is_loop(r)) (is_unrolled ? inner : outer).push_back(r);
    }
    const auto sum_over = [&](UOp x, const std::vector<UOp>& ranges) {
      std::vector<UOp> srcs{x};
      srcs.insert(srcs.end(), ranges.begin(), ranges.end());
      return arena_.with_srcs(sum, srcs);
    };
    UOp x = sum.src(0);
    for (UOp r : sum.srcs().subspan(1) | std::views::reverse) {
      if (!is_loop(r)) continue;
      if (!level.takes(most_steps(r)) && !inner.empty()) {
        x = sum_over(x, inner);
        inner.clear();
        level.close();
      }
      level.take(most_steps(r));
      inner.insert(inner.begin(), r);
    }
    if (x == sum.src(0)) return sum;
    inner.insert(inner.end(), outer.begin(), outer.end());
    return sum_over(x, inner);
  }

  Arena& arena_;
  const Target& target_;
  int64_t next_id_;
  std::unordered_set<UOp> sizes_of_others_;
  std::unordered_map<UOp, Cut> cuts_;
  bool has_levels_ = false;
};

}  // namespace

UOp sum_in_blocks(UOp sink, const Target& target) { return Blocks(sink, target).in(sink); }

}  // namespace weft
