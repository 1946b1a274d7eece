// The shape of the kernel decides; each step is tried on the kernel as the steps before left it.
#include "codegen/opt/choose_group_opts.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/opt/loops.h"
#include "codegen/opt/merged_tiles.h"
#include "codegen/opt/opt.h"
#include "codegen/opt/tensor_tiles.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr int64_t kThreads = 256;  // of a group, if there is enough to do
constexpr int64_t kMostThreads = 1024;
constexpr int64_t kUnroll = 4;        // reads of a reduction that are under way together
constexpr int64_t kTransposed = 64;   // of a transposition's tile, on each axis
constexpr int64_t kDepth = 16;        // of a contraction's tile, along the sum
constexpr int64_t kRegisterRows = 8;  // of the tile of a thread
constexpr int64_t kLeastOwned = 16;   // writes of an owner
// Rows that are worth a tile of them, most of which is empty: the other factor is read once.
constexpr int64_t kLeastTiled = 8;
// Elements of a row that a thread keeps in registers from one loop over the row to the next.
constexpr int64_t kHeld = 32;

struct Contraction {
  UOp rows, columns, sum;
  int64_t left, right;  // arguments
};

class GroupChooser {
 public:
  GroupChooser(UOp sink, const Target& target) : sink_(mark_parallel_loops(sink)), target_(target) {
    look();
  }

  OptList run() {
    share_out_writes();
    choose();
    return opts_;
  }

 private:
  void choose() {
    const bool has_local = target_.groups.local_bytes > 0;
    if (parallel_.empty() && reductions_.empty()) return;
    if (tile_products() || tile_products_of_split_loops()) return;
    if (const auto c = has_local ? find_contraction() : std::nullopt; c && tile_contraction(*c)) {
      return;
    }
    if (!reductions_.empty()) {
      reduce();
    } else if (const UOp along = in_order(parallel_); !along || !transpose(along)) {
      if (along) give_out(along.range_id());
    }
    const bool is_given_out =
        std::ranges::any_of(opts_, [](const Opt& opt) { return opt.kind != OptKind::kShard; });
    if (!is_given_out && !parallel_.empty()) give_out(parallel_.back().range_id());
  }

  // ---- the kernel as it is

  void look() {
    order_ = toposort(sink_);
    accesses_.clear();
    parallel_.clear();
    reductions_.clear();
    for (UOp n : order_) {
      if (n.is(Op::LOAD) || (n.is(Op::STORE) && !is_register(n.src(0)))) accesses_.push_back(n);
    }
    for (UOp effect : sink_.srcs()) {
      if (!effect.is(Op::END)) continue;
      for (UOp r : effect.srcs().subspan(1)) {
        const bool is_new = std::ranges::find(parallel_, r) == parallel_.end();
        if (r.axis() == AxisType::kGlobal && is_new && r.range_id() != owners_)
          parallel_.push_back(r);
      }
    }
    for (UOp n : order_) {
      if (n.is(Op::RANGE) && n.axis() == AxisType::kReduce) reductions_.push_back(n);
    }
  }

  bool attempt(OptKind kind, int64_t axis, int64_t amount) {
    const Opt opt{kind, axis, amount};
    if (!why_not(sink_, opt).empty()) return false;
    sink_ = apply_opt(sink_, opt);
    opts_.push_back(opt);
    look();
    return true;
  }

  UOp range(int64_t id) const { return range_by_id(sink_, id); }

  static int64_t places(UOp range) { return bounds(range.src(0)).hi; }
  static int64_t places_of(const std::vector<UOp>& ranges) {
    double out = 1;
    for (UOp r : ranges) out *= double(places(r));
    return int64_t(std::min(out, 1e18));
  }
  static int64_t places_of(UOp reduce) {
    return places_of(std::vector<UOp>(reduce.srcs().begin() + 1, reduce.srcs().end()));
  }
  int64_t places(int64_t id) const { return range(id) ? places(range(id)) : 1; }

  // Accesses in order along the range, less those that are not.
  double order_along(UOp r) const {
    double score = 0;
    for (UOp n : accesses_) {
      if (!is_in_scope(r, n)) continue;
      const std::optional<int64_t> step = step_of(n, r);
      if (step == 0) continue;
      double times = 1;
      for (UOp around : ranges_of(n)) times *= double(places(around));
      score += times * (step == 1 ? 2 + int(n.is(Op::STORE)) : step == -1 ? 1 : -1);
    }
    return score;
  }
  UOp in_order(const std::vector<UOp>& ranges) const {
    UOp best;
    double most = 0;
    for (UOp r : ranges) {
      const double score = order_along(r);
      if (score > most || (best && score == most && places(r) > places(best)))
        best = r, most = score;
    }
    return best;
  }

  // Elements of the widest dtype that are one access; 1 where the loop cannot be cut in them.
  int64_t lanes_along(UOp r) const {
    int64_t widest = 1;
    bool is_any = false;
    for (UOp n : accesses_) {
      if (!is_in_scope(r, n)) continue;
      const DType type = n.is(Op::STORE) ? n.src(1).dtype() : n.dtype();
      widest = std::max<int64_t>(widest, type.item_bytes());
      is_any = is_any || step_of(n, r) == 1;
    }
    int64_t lanes = is_any ? int64_t(target_.memory_vector_bytes) / widest : 1;
    const UOp size = r.src(0);
    while (lanes > 1 && (!size.is_const() || size.const_int() % lanes != 0)) lanes /= 2;
    return std::max<int64_t>(lanes, 1);
  }

  // n places of the loop to the threads of a group, with gates where they are not a multiple.
  bool give_threads(int64_t id, int64_t n) {
    const UOp r = range(id);
    if (!r || n < 2) return false;
    const UOp size = r.src(0);
    if (!size.is_const() || size.const_int() % n != 0) {
      if (!attempt(OptKind::kPad, id, n)) return false;
    }
    return attempt(OptKind::kLocal, id, n);
  }

  int64_t most_threads() const {
    return std::min<int64_t>(kThreads, int64_t(std::bit_floor(target_.groups.threads)));
  }

  // The least power of two that is at least n.
  static int64_t power_above(int64_t n) {
    return int64_t(std::bit_ceil(uint64_t(std::max<int64_t>(n, 1))));
  }

  // ---- writes in an order

  // An owner is a group: its threads stop for the same writes.
  void share_out_writes() {
    for (UOp r : order_) {
      if (!r.is(Op::RANGE) || r.axis() != AxisType::kLoop || !reductions_.empty()) continue;
      int64_t elements = 0;
      for (UOp n : accesses_) {
        if (n.is(Op::STORE)) elements = bounds(place_of(n.src(0)).base.src(0)).hi;
      }
      // As many as keep the device busy, and have something to do.
      const int64_t together = int64_t(target_.groups.together), here = places_of(parallel_);
      const int64_t most = std::min(
          {together, together * kThreads / here, elements / here, places(r) / kLeastOwned});
      if (most < 2) continue;
      owners_ = free_range_id(sink_);
      if (attempt(OptKind::kShard, r.range_id(), int64_t(std::bit_floor(uint64_t(most))))) return;
      owners_ = -1;
    }
  }

  // ---- elementwise

  // Threads along a loop, and, where it is short, along others.
  void give_out(int64_t id, int64_t most_lanes = 16) {
    const int64_t most = most_threads();
    const int64_t lanes = std::min(lanes_along(range(id)), most_lanes);
    if (lanes > 1 && order_along(range(id)) > 0) attempt(OptKind::kVector, id, lanes);
    const int64_t along = std::min(most, power_above(places(id)));
    int64_t left = most / along, dimensions = 1;
    for (size_t k = parallel_.size(); k-- > 0 && left > 1 && dimensions < 3;) {
      const int64_t other = parallel_[k].range_id();
      if (other == id || places(other) < 2) continue;
      const int64_t here = std::min(left, power_above(places(other)));
      if (give_threads(other, here)) left /= here, dimensions++;
      k = std::min(k, parallel_.size());
    }
    give_threads(id, along);
  }

  // ---- transpositions

  bool transpose(UOp along) {
    if (target_.groups.local_bytes == 0 || sink_.src_count() != 1) return false;
    if (most_threads() < kTransposed) return false;
    for (UOp n : accesses_) {
      if (!n.is(Op::LOAD) || step_of(n, along) == 1 || step_of(n, along) == 0) continue;
      for (UOp other : parallel_) {
        if (other == along || step_of(n, other) != 1) continue;
        if (places(other) < kTransposed || places(along) < kTransposed) continue;
        if (!along.src(0).is_const() || !other.src(0).is_const()) continue;
        return transpose(n, along.range_id(), other.range_id());
      }
    }
    return false;
  }

  bool transpose(UOp read, int64_t along, int64_t other) {
    const int64_t argument = place_of(read.src(0)).base.number();
    if (places(other) % kTransposed != 0) attempt(OptKind::kPad, other, kTransposed);
    if (places(along) % kTransposed != 0) attempt(OptKind::kPad, along, kTransposed);
    const int64_t rows = std::min(kTransposed, most_threads() / kTransposed);
    attempt(OptKind::kLocal, other, rows);
    attempt(OptKind::kUpcast, other, kTransposed / rows);
    attempt(OptKind::kLocal, along, kTransposed);
    for (UOp r : {range(other), range(along)}) {
      if (r) return attempt(OptKind::kShare, argument, r.range_id()) || true;
    }
    return true;
  }

  // ---- reductions

  // Loops that no reduction stands in: what they do comes after it.
  std::vector<int64_t> loops_behind() const {
    std::vector<int64_t> out;
    for (UOp r : parallel_) {
      const bool has_reduction = std::ranges::any_of(
          order_, [&](UOp n) { return n.is(Op::REDUCE) && !is_in_scope(r, n); });
      if (has_reduction) out.push_back(r.range_id());
    }
    return out;
  }

  void reduce() {
    const std::vector<int64_t> behind = loops_behind();
    std::vector<UOp> outer;
    for (UOp r : parallel_) {
      if (std::ranges::find(behind, r.range_id()) == behind.end()) outer.push_back(r);
    }
    const UOp along = in_order(reductions_), across = in_order(outer);
    const int64_t results = places_of(outer);
    const int64_t enough = int64_t(target_.groups.together) * kThreads;
    const bool is_in_order = along && (!across || order_along(along) >= order_along(across));
    const UOp longest = std::ranges::max(reductions_, {}, [](UOp r) { return places(r); });
    // Threads along results that lie side by side read lines of memory together.
    const int64_t few = across ? 2 * int64_t(target_.groups.together) : enough / 4;
    const UOp shared = is_in_order ? along : results < few ? longest : UOp();
    const bool by_group = shared && target_.groups.local_bytes > 0 && places(shared) >= 16;
    if (by_group) {
      reduce_by_groups(shared, outer, behind);
    } else {
      for (const int64_t id : behind) attempt(OptKind::kSerial, id, 1);
      std::vector<int64_t> sums;
      sums.reserve(reductions_.size());
      for (UOp r : reductions_) sums.push_back(r.range_id());
      const UOp along_results = across ? range(across.range_id()) : UOp();
      if (along_results) {
        give_out(along_results.range_id(), results >= 4 * enough ? 16 : 1);
      } else if (!outer.empty()) {
        give_out(outer.back().range_id(), 1);
      }
      for (const int64_t id : sums) unroll(id);
    }
  }

  void unroll(int64_t id) {
    const UOp r = range(id);
    if (r && places(r) >= 2 * kUnroll) attempt(OptKind::kUnroll, id, kUnroll);
  }

  // A loop of this size of each reduction, none of which stands in another.
  std::vector<int64_t> alike(int64_t size) const {
    std::vector<UOp> out;
    for (UOp n : order_) {
      if (!n.is(Op::REDUCE)) continue;
      UOp best;
      for (UOp r : n.srcs().subspan(1)) {
        if (r.axis() != AxisType::kReduce || places(r) != size) continue;
        if (!best || order_along(r) > order_along(best)) best = r;
      }
      const bool is_new = std::ranges::none_of(
          out, [&](UOp r) { return r == best || is_in_scope(r, n) || holds(best, r); });
      if (best && is_new) out.push_back(best);
    }
    std::vector<int64_t> ids;
    ids.reserve(out.size());
    for (UOp r : out) ids.push_back(r.range_id());
    return ids;
  }

  // Whether a reduction by threads stands in the range.
  bool holds_threads(UOp range) const {
    return std::ranges::any_of(order_, [&](UOp n) {
      return n.is(Op::REDUCE) && is_in_scope(range, n) &&
             std::ranges::any_of(n.srcs().subspan(1), [](UOp r) {
               return r.is(Op::RANGE) && r.axis() == AxisType::kLocal;
             });
    });
  }

  // Whether what closes the inner range stands in the outer one.
  bool holds(UOp outer, UOp inner) const {
    return std::ranges::any_of(order_, [&](UOp n) {
      return n.is(Op::REDUCE) && outer && is_in_scope(outer, n.src(0)) && is_in_scope(outer, n) &&
             std::ranges::find(n.srcs(), inner) != n.srcs().end();
    });
  }

  // All reductions as long as this one, and what is done after them, by the same threads.
  void reduce_by_groups(UOp along, const std::vector<UOp>& outer,
                        const std::vector<int64_t>& behind) {
    const int64_t size = places(along), lanes = lanes_along(along);
    // A few long rows: each has all threads that a group can have.
    const bool is_few = 8 * places_of(outer) <= int64_t(target_.groups.together) &&
                        size >= kThreads * kHeld * lanes;
    const int64_t most =
        is_few ? std::min<int64_t>(kMostThreads, int64_t(std::bit_floor(target_.groups.threads)))
               : most_threads();
    const int64_t threads = std::min(most, power_above((size + lanes - 1) / lanes));
    if (threads < most && !outer.empty()) {
      const UOp row = std::ranges::max(outer, {}, [](UOp r) { return places(r); });
      give_threads(row.range_id(), std::min(most / threads, power_above(places(row)) / 2));
    }
    const std::vector<int64_t> sums = alike(size);
    // What several loops without iterations read and compute is one thing.
    const bool is_held = size <= threads * kHeld && sums.size() + behind.size() > 1;
    for (const int64_t id : sums) {
      const int64_t here = std::min(lanes, lanes_along(range(id)));
      if (here > 1 && order_along(range(id)) > 0) attempt(OptKind::kVector, id, here);
      give_threads(id, threads);
      if (!is_held || !attempt(OptKind::kUnroll, id, places(id))) unroll(id);
    }
    std::vector<UOp> after;
    after.reserve(behind.size());
    for (const int64_t id : behind) after.push_back(range(id));
    const UOp fastest = in_order(after);
    for (const int64_t id : behind) {  // threads along one of them
      const UOp r = range(id);
      const bool is_wide =
          (behind.size() == 1 || r == fastest) && places(r) >= threads && !holds_threads(r);
      const int64_t here = std::min(lanes, lanes_along(r));
      if (is_wide && here > 1 && order_along(r) > 0) attempt(OptKind::kVector, id, here);
      if (is_wide) give_threads(id, threads);
      if (is_wide && is_held) attempt(OptKind::kUpcast, id, places(id));
      attempt(OptKind::kSerial, id, 1);
    }
  }

  // ---- contractions

  static UOp only_load(UOp factor) {
    UOp found;
    for (UOp n : toposort(factor)) {
      if (!n.is(Op::LOAD)) continue;
      if (found) return {};
      found = n;
    }
    return found;
  }

  std::optional<Contraction> find_contraction() const {
    if (sink_.src_count() != 1 || !sink_.src(0).is(Op::END)) return {};
    UOp only;
    for (UOp n : order_) {
      if (!n.is(Op::REDUCE)) continue;
      if (only) return {};
      only = n;
    }
    if (!only || only.arg_op() != Op::ADD || !only.src(0).is(Op::MUL) || !only.dtype().is_float())
      return {};
    const UOp a = only.src(0).src(0), b = only.src(0).src(1);
    for (const auto& [left, right] : {std::pair(a, b), std::pair(b, a)}) {
      const UOp read_left = only_load(left), read_right = only_load(right);
      if (!read_left || !read_right) return {};
      Contraction c{{},
                    {},
                    {},
                    place_of(read_left.src(0)).base.number(),
                    place_of(read_right.src(0)).base.number()};
      for (UOp r : parallel_) {
        const bool in_left = is_in_scope(r, left), in_right = is_in_scope(r, right);
        if (!r.src(0).is_const()) continue;
        if (in_left && !in_right && (!c.rows || places(r) > places(c.rows))) c.rows = r;
        if (in_right && !in_left && writes_in_order(r)) c.columns = r;
      }
      for (UOp r : only.srcs().subspan(1)) {
        if (r.src(0).is_const() && (!c.sum || places(r) > places(c.sum))) c.sum = r;
      }
      if (c.rows && c.columns && c.sum && c.left != c.right) return c;
    }
    return {};
  }

  bool writes_in_order(UOp r) const {
    return std::ranges::all_of(accesses_, [&](UOp n) {
      return !n.is(Op::STORE) || !is_in_scope(r, n) || step_of(n, r) == 1;
    });
  }

  bool tile_products() { return merge_tiles() || tile_by_tensor_cores(); }

  // Loops that both factors stand in, one in their quotients and one in their remainders, as where
  // two axes are written as one.
  bool tile_products_of_split_loops() {
    if (target_.tensor.dtypes == 0) return false;
    const UOp before = sink_;
    const size_t done = opts_.size();
    for (size_t i = 0; i < order_.size(); i++) {
      const UOp n = order_[i];
      const bool is_quotient = n.is(Op::IDIV) && n.src(0).is(Op::RANGE) && n.src(1).is_const() &&
                               n.src(0).axis() == AxisType::kGlobal;
      const UOp size = is_quotient ? n.src(0).src(0) : UOp();
      const int64_t inner = is_quotient ? n.src(1).const_int() : 0;
      if (!size || !size.is_const() || inner < 2 || size.const_int() % inner != 0) continue;
      if (size.const_int() > inner && attempt(OptKind::kTile, n.src(0).range_id(), inner)) i = 0;
    }
    if (opts_.size() > done && tile_products()) return true;
    sink_ = before;
    opts_.resize(done);
    look();
    return false;
  }

  // Reductions that depend on products, and products of their results, where rows fill a tile.
  bool merge_tiles() {
    if (target_.limits.tile_bytes == 0) return false;
    for (const int64_t id : ranges_to_merge(sink_)) {
      const FoundMergedTiles found = find_merged_tiles(sink_, id);
      if (!found.why_not.empty() || !target_.tensor.has(found.tiles.scores[0].a.dtype())) continue;
      const int64_t block = merged_block(found.tiles, int64_t(target_.limits.tile_bytes));
      if (block == 0) continue;
      if (target_.tensor.has_boxes && attempt(OptKind::kBulk, id, block)) return true;
      if (attempt(OptKind::kTensor, id, block)) return true;
    }
    return false;
  }

  // Products of tiles, where the target has them and the factors lie so that they can be fetched.
  bool tile_by_tensor_cores() {
    if (target_.tensor.dtypes == 0) return false;
    std::vector<UOp> sums = reductions_;
    std::ranges::stable_sort(sums, std::ranges::greater(), [](UOp r) { return places(r); });
    for (UOp sum : sums) {
      const FoundContraction found = find_tile_contraction(sink_, sum.range_id());
      const TileContraction& c = found.contraction;
      if (!found.why_not.empty() || !target_.tensor.has(c.a.dtype())) continue;
      const int64_t deep = is_summed_as_one(c) ? places_of(c.reduce) : places(c.sum);
      if (places(c.rows) < kLeastTiled || places(c.columns) < 32 || deep < 32) continue;
      if (tile_by_tensor_cores(c)) return true;
    }
    return false;
  }

  bool tile_by_tensor_cores(const TileContraction& c) {
    const int64_t rows = c.rows.range_id(), columns = c.columns.range_id(), sum = c.sum.range_id();
    const int64_t high = (places(c.rows) + kTileRows - 1) / kTileRows, wide = places(c.columns);
    const int64_t others = places_of(parallel_) / places(c.rows) / wide;
    // The widest tile of which there are enough to keep the device busy.
    int64_t tile = target_.tensor.most_columns;
    const auto is_too_wide = [&] {
      const int64_t tiles = high * ((wide + tile - 1) / tile) * others;
      return tiles < int64_t(target_.groups.together) / 16 || tile >= 2 * wide;
    };
    while (tile > 64 && is_too_wide()) tile /= 2;
    if (tile_bytes(tile) > int64_t(target_.tensor.local_bytes)) return false;
    const UOp before = sink_;
    const size_t done = opts_.size();
    const bool is_shallow = c.reduce.src_count() == 2 && places(c.sum) <= kTileDepth;
    const int64_t depth = is_shallow ? 2 * kTileDepth : kTileDepth;  // two steps at the least
    for (const auto& [id, multiple] :
         {std::pair(rows, kTileRows), std::pair(columns, tile), std::pair(sum, depth)}) {
      if (id == sum && is_summed_as_one(c)) continue;
      if (places(id) % multiple != 0) attempt(OptKind::kPad, id, multiple);
    }
    if (target_.tensor.has_boxes && attempt(OptKind::kBulk, sum, tile)) return true;
    if (attempt(OptKind::kTensor, sum, tile)) return true;
    sink_ = before;
    opts_.resize(done);
    look();
    return false;
  }

  // Threads of a group on each axis of a contraction's tile.
  static int64_t threads_of_tile(int64_t tile) { return tile == 128 ? 16 : 8; }

  bool fits(const Contraction& c, int64_t tile) const {
    const int64_t threads = threads_of_tile(tile);
    int64_t item = 1;
    for (UOp n : accesses_) {
      const int64_t argument = place_of(n.src(0)).base.number();
      if (argument == c.left || argument == c.right)
        item = std::max<int64_t>(item, n.dtype().item_bytes());
    }
    const int64_t bytes = 2 * (tile + 4) * (kDepth + 4) * item;
    return threads * threads <= most_threads() && bytes <= int64_t(target_.groups.local_bytes);
  }

  bool tile_contraction(const Contraction& c) {
    const int64_t rows = c.rows.range_id(), columns = c.columns.range_id(), sum = c.sum.range_id();
    const int64_t high = places(c.rows), wide = places(c.columns), deep = places(c.sum);
    if (high < 32 || wide < 32 || deep < kDepth) return false;
    // The largest tile of which there are enough to keep the device busy.
    int64_t others = places_of(parallel_) / high / wide, tile = 128;
    const auto tiles = [&] {
      return (high + tile - 1) / tile * ((wide + tile - 1) / tile) * others;
    };
    while (tile > 32 && (tiles() < int64_t(target_.groups.together) / 2 || !fits(c, tile)))
      tile /= 2;
    if (!fits(c, tile)) return false;
    const int64_t threads = threads_of_tile(tile), here = tile / threads;  // places of a thread
    const int64_t lanes = std::min<int64_t>(4, here);
    if (high % tile != 0) attempt(OptKind::kPad, rows, tile);
    if (wide % tile != 0) attempt(OptKind::kPad, columns, tile);
    if (deep % kDepth != 0) attempt(OptKind::kPad, sum, kDepth);
    attempt(OptKind::kUpcast, rows, std::min(here, kRegisterRows));
    attempt(OptKind::kLocal, rows, threads);
    attempt(OptKind::kVector, columns, lanes);
    attempt(OptKind::kLocal, columns, threads);
    if (here > lanes) attempt(OptKind::kUpcast, columns, here / lanes);
    const int64_t inner = free_range_id(sink_);
    attempt(OptKind::kTile, sum, kDepth);
    const int64_t loop = range(sum) ? sum : inner;
    attempt(OptKind::kShare, c.left, loop);
    attempt(OptKind::kShare, c.right, loop);
    if (range(inner)) attempt(OptKind::kUnroll, inner, kUnroll);
    return true;
  }

  UOp sink_;
  const Target& target_;
  OptList opts_;
  int64_t owners_ = -1;  // the id of a loop of owners
  std::vector<UOp> order_, accesses_, parallel_, reductions_;
};

}  // namespace

OptList choose_group_opts(UOp sink, const Target& target) {
  return GroupChooser(sink, target).run();
}

}  // namespace weft
