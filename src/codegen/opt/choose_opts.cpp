// First the shape of the kernel decides: a contraction gets a tile of registers and packed panels,
// a transposition tiles for the cache, all others vectors where memory is read in order. Each step
// is tried on the kernel as the steps before have left it.
#include "codegen/opt/choose_opts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/opt/block_rows.h"
#include "codegen/opt/choose_block_opts.h"
#include "codegen/opt/choose_group_opts.h"
#include "codegen/opt/loop_facts.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr int64_t kTileRows = 6, kTileVectors = 4;  // of a contraction, in registers
constexpr int64_t kDotColumns = 8;                  // of a tile of dot products
constexpr int64_t kCacheTile = 64;                  // of a transposition, elements on each axis
constexpr size_t kPanelCaches = 8;                  // a packed panel is at most so many caches
constexpr int64_t kGroups = 4;                      // accumulators that hide an addition's latency
constexpr int64_t kLeastLanes = 4;                  // of a vector that is worth it
constexpr int64_t kShortVectors = 8;                // vectors of a loop that is short
constexpr int64_t kNearStep = 4;                    // of lanes that share cache lines
constexpr int64_t kComputed = 8;                    // nodes for each lane that is read alone
constexpr int64_t kFar = int64_t(1) << 40;          // a step that is not known
constexpr int64_t kCopyNodes = 160;                 // nodes of a body that are worth copying
constexpr int64_t kThreadWork = 1 << 15;            // operations that are worth a thread

// REDUCE(ADD, a * b) where a knows nothing of `columns` and b nothing of `rows`.
struct Contraction {
  UOp rows, columns;
  int64_t rows_argument, panel;  // that a reads, and b
  double panel_bytes = 0;        // of a panel of a tile's width
  bool is_narrow = false;        // less than a vector of columns
  UOp more_columns{};            // another loop that b knows alone, the nearest
};

// REDUCE(ADD, a * b) where both factors are read in order along what is summed: dot products of
// what a has along `rows` with what b has along `columns`. Or only a is, and b is packed.
struct DotProducts {
  UOp along, rows, columns;
  UOp packed{};  // the LOAD of b
};

class Chooser {
 public:
  Chooser(UOp sink, const Target& target) : sink_(mark_parallel_loops(sink)), target_(target) {
    look();
  }

  OptList run() {
    if (parallel_.empty() && reductions_.empty()) return {};
    split_groups();
    merge_loops();
    const std::optional<Contraction> contraction = find_contraction();
    const std::optional<DotProducts> dots = find_dot_products();
    const bool is_dotted = contraction && contraction->is_narrow && dots && !dots->packed;
    if (is_dotted && is_half_filled(*dots) && turn_contraction(*contraction)) {
    } else if (contraction && !is_dotted) {
      tile_contraction(*contraction);
    } else if (dots) {
      tile_dot_products(*dots);
    } else if (target_.vector_bytes > 0) {
      const UOp along = best_vector_range();
      if (!along || !tile_transposition(along)) {
        if (!along) run_lines_together();
        thread(along);
        if (along) vectorize_loop(along.range_id());
      }
      vectorize_reductions();
    }
    thread({});
    return opts_;
  }

 private:
  // ---- the kernel as it is

  void look() {
    order_ = toposort(sink_);
    accesses_.clear();
    parallel_.clear();
    reductions_.clear();
    for (UOp n : order_) {
      if (is_access(n)) accesses_.push_back(n);
      if (!n.is(Op::RANGE)) continue;
      if (n.axis() == AxisType::kGlobal) parallel_.push_back(n);
      if (n.axis() == AxisType::kReduce) reductions_.push_back(n);
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

  int64_t lanes_in(UOp of) const {
    size_t bytes = 1;
    for (UOp n : order_) {
      const DType type = n.dtype();
      if (type.is_pointer() || type.is_void() || type.is_index() || !is_in_scope(of, n)) continue;
      bytes = std::max(bytes, computed_bytes(type));
    }
    return int64_t(target_.vector_bytes / bytes);
  }

  // Of the vectors that do a loop in as few as there can be, the last one filled up: the narrowest.
  int64_t lanes_for(UOp of) const {
    const int64_t places = most_places(of);
    const auto vectors = [&](int64_t n) { return (places + n - 1) / n; };
    int64_t lanes = lanes_in(of);
    while (lanes > kLeastLanes && vectors(lanes / 2) == vectors(lanes)) lanes /= 2;
    return lanes;
  }

  int64_t nodes_in(UOp of) const {
    return std::ranges::count_if(order_, [&](UOp n) {
      return is_in_scope(of, n) && !n.dtype().is_index() && !n.dtype().is_pointer();
    });
  }

  // How often the innermost body runs, at most.
  double work() const {
    double most = 0;
    for (UOp n : order_) most = std::max(most, places_of(n));
    return most;
  }

  // ---- contractions

  static bool depends(UOp n, UOp range) { return is_in_scope(range, n); }

  // Products that are read by the quotient of a loop, as those of groups are: the loop becomes the
  // two that it stands for, so that each factor depends on those of its own alone.
  void split_groups() {
    if (std::ranges::none_of(order_, is_sum_of_products)) return;
    const auto quotient = [&](UOp n) {
      if (!n.is(Op::IDIV) || !n.src(0).is(Op::RANGE) || !n.src(1).is_const()) return false;
      const UOp r = n.src(0);
      return r.axis() == AxisType::kGlobal && r.src(0).is_const() &&
             most_places(r) % n.src(1).const_int() == 0;
    };
    for (auto at = std::ranges::find_if(order_, quotient); at != order_.end();
         at = std::ranges::find_if(order_, quotient)) {
      if (!attempt(OptKind::kTile, at->src(0).range_id(), at->src(1).const_int())) return;
    }
  }

  // The axes of reductions as memory has them: loops that are walked as one are one, so that an
  // axis that is long in memory is not taken for several short ones.
  void merge_loops() {
    if (reductions_.empty()) {
      while (merge_short_loop()) {
      }
      return;
    }
    while (merge_one_of(parallel_) || merge_one_of(reductions_)) {
    }
  }
  // Of elements: the innermost loop, where it is not much longer than a vector.
  bool merge_short_loop() {
    const std::vector<UOp> loops = loops_of_end();
    if (loops.size() < 2 || target_.vector_bytes == 0) return false;
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

  std::optional<Contraction> find_contraction() const {
    std::optional<Contraction> narrow;
    for (UOp n : order_) {
      if (!is_sum_of_products(n)) continue;
      for (const auto& [a, b] : {std::pair(n.src(0).src(0), n.src(0).src(1)),
                                 std::pair(n.src(0).src(1), n.src(0).src(0))}) {
        const std::optional<Contraction> c = as_contraction(n, a, b);
        if (c && !c->is_narrow) return c;
        if (!narrow) narrow = c;
      }
    }
    return narrow;
  }

  std::optional<Contraction> as_contraction(UOp reduce, UOp a, UOp b) const {
    const UOp read = only_load(b), other = only_load(a);
    if (!read || !other) return {};
    const int64_t lanes = int64_t(target_.vector_bytes / computed_bytes(reduce.dtype()));
    Contraction out{
        {}, {}, place_of(other.src(0)).base.number(), place_of(read.src(0)).base.number()};
    int most = 0;
    for (UOp r : parallel_) {
      const bool in_a = depends(a, r), in_b = depends(b, r);
      if (in_b && !in_a && most_places(r) >= std::min(lanes, kLeastLanes) && writes_in_order(r)) {
        const int score = 1 + (step_of(read, r) == 1 ? 1 : 0) + (most_places(r) >= lanes ? 2 : 0);
        if (score > most) out.columns = r, most = score;
      }
      if (in_a && !in_b && (!out.rows || most_places(r) > most_places(out.rows))) out.rows = r;
    }
    if (!out.columns || !out.rows || most_places(out.rows) < 2) return {};
    out.is_narrow = most_places(out.columns) < lanes;
    if (out.is_narrow && !out.columns.src(0).is_const()) return {};
    for (UOp r : parallel_) {
      if (r == out.columns || depends(a, r) || !depends(b, r)) continue;
      const auto step = [&](UOp of) { return std::abs(step_of(read, of).value_or(kFar)); };
      if (!out.more_columns || step(r) < step(out.more_columns)) out.more_columns = r;
    }
    out.panel_bytes = double(kTileVectors * lanes * read.dtype().item_bytes());
    for (UOp r : reduce.srcs().subspan(1)) out.panel_bytes *= double(most_places(r));
    // A panel that is read across is worth packing only for many rows.
    const bool is_packed = step_of(read, out.columns) == 1 || is_worth_packing(out);
    return is_packed ? std::optional(out) : std::nullopt;
  }

  // ---- dot products

  std::optional<DotProducts> find_dot_products() const {
    if (target_.vector_bytes == 0) return {};
    for (UOp n : order_) {
      if (!is_sum_of_products(n)) continue;
      const UOp a = only_load(n.src(0).src(0)), b = only_load(n.src(0).src(1));
      if (!a || !b) continue;
      for (const bool is_packed : {false, true}) {
        if (const auto out = as_dot_products(n, a, b, is_packed)) return out;
        if (const auto out = as_dot_products(n, b, a, is_packed); is_packed && out) return out;
      }
    }
    return {};
  }

  std::optional<DotProducts> as_dot_products(UOp reduce, UOp a, UOp b, bool is_packed) const {
    DotProducts out;
    for (UOp r : reduce.srcs().subspan(1)) {
      const std::optional<int64_t> step = step_of(b, r);
      const bool is_in_order = step_of(a, r) == 1 && (is_packed ? step && *step != 0 : step == 1);
      if (is_in_order && r.src(0).is_const() && most_places(r) >= kLeastLanes) out.along = r;
    }
    if (!out.along) return {};
    out.rows = nearest_loop(a, b), out.columns = nearest_loop(b, a);
    if (!out.rows || !out.columns) return {};
    if (is_packed) {
      out.packed = b;
      // What is packed is read again for every tile of rows.
      const bool is_worth_it = out.rows.src(0).is_const() && most_places(out.rows) >= 4 * kTileRows;
      return is_worth_it ? std::optional(out) : std::nullopt;
    }
    if (most_places(out.rows) < most_places(out.columns)) std::swap(out.rows, out.columns);
    return out;
  }

  // Vectors along what is summed have room for twice as much.
  bool is_half_filled(const DotProducts& d) const {
    const int64_t places = most_places(d.along), lanes = lanes_for(d.along);
    const int64_t vectors = (places + lanes - 1) / lanes;
    return 2 * places <= vectors * lanes_in(d.along);
  }

  // Of the loops in which one is read and not the other, that with the smallest step.
  UOp nearest_loop(UOp read, UOp other) const {
    UOp best;
    int64_t least = 0;
    for (UOp r : parallel_) {
      const std::optional<int64_t> step = step_of(read, r);
      if (!step || *step == 0 || step_of(other, r) != 0 || most_places(r) < 2) continue;
      if (!best || std::abs(*step) < least) best = r, least = std::abs(*step);
    }
    return best;
  }

  // A vector of partial sums for each of a tile of products: what is read once is used for all of a
  // row or a column of them.
  void tile_dot_products(const DotProducts& d) {
    const int64_t along = d.along.range_id(), places = most_places(d.along);
    const int64_t lanes = lanes_for(d.along), high = most_places(d.rows);
    int64_t inner_rows = d.rows.range_id();
    const int64_t argument = d.packed ? place_of(d.packed.src(0)).base.number() : 0;
    if (const int64_t next = free_range_id(sink_);
        d.packed && attempt(OptKind::kTile, inner_rows, high)) {
      inner_rows = next;  // all of it, inside of the loops that what is packed has
    }
    if (places % lanes != 0) attempt(OptKind::kPad, along, lanes);
    if (!attempt(OptKind::kVector, along, lanes)) return;
    const int64_t sums = int64_t(target_.vector_registers) * 3 / 4;
    const int64_t columns = fitting(kDotColumns, most_places(d.columns));
    const int64_t rows = fitting(std::max<int64_t>(1, sums / columns), high);
    attempt(OptKind::kUpcast, d.columns.range_id(), columns);
    if (rows > 1) attempt(OptKind::kUpcast, inner_rows, rows);
    if (!d.packed) return;
    thread({});
    pack(argument, inner_rows);
  }

  // In the outermost loop in which a core's cache holds what is read of it.
  void pack(int64_t argument, int64_t inner) {
    const std::vector<UOp> loops = loops_of_end();
    for (UOp r : loops) {
      if (r.range_id() == inner) return;
      if (packed_bytes(argument, loops, r) > double(target_.cache_bytes)) continue;
      if (attempt(OptKind::kStage, argument, r.range_id())) return;
    }
  }
  // What the loops inside of one of them read.
  double packed_bytes(int64_t argument, const std::vector<UOp>& loops, UOp outer) const {
    double bytes = 0;
    for (UOp n : accesses_) {
      if (!n.is(Op::LOAD) || place_of(n.src(0)).base.number() != argument) continue;
      bytes = double(n.dtype().item_bytes());
      for (UOp r : ranges_of(n)) {
        const auto at = std::ranges::find(loops, r);
        if (at == loops.end() || at > std::ranges::find(loops, outer))
          bytes *= double(most_places(r));
      }
    }
    return bytes;
  }

  bool writes_in_order(UOp r) const {
    return std::ranges::all_of(accesses_, [&](UOp n) {
      return !n.is(Op::STORE) || !is_in_scope(r, n) || step_of(n, r) == 1;
    });
  }

  // A panel is read again for every tile of rows, from the cores' caches or the one they share.
  bool is_worth_packing(const Contraction& c) const {
    return c.columns.src(0).is_const() && c.rows.src(0).is_const() &&
           most_places(c.rows) >= 4 * kTileRows &&
           c.panel_bytes <= double(kPanelCaches * target_.cache_bytes);
  }

  // Where columns fill less than half a vector, rows are its lanes: they are packed, and written
  // one by one.
  bool turn_contraction(const Contraction& c) {
    const int64_t lanes = lanes_in(c.rows), rows = c.rows.range_id();
    const int64_t high = most_places(c.rows), wide = most_places(c.columns);
    std::vector<int64_t> around;  // loops outside of the rows that what is packed knows nothing of
    int64_t uses = 1;             // of what is packed
    bool is_outside = true;
    for (UOp r : loops_of_end()) {
      if (r == c.rows) {
        is_outside = false;
      } else if (!reads_along(c.rows_argument, r)) {
        uses *= most_places(r);
        if (is_outside) around.push_back(r.range_id());
      }
    }
    const bool is_worth_it = c.is_narrow && 2 * wide <= lanes && high >= 2 * lanes &&
                             uses >= 4 * kTileRows && c.rows.src(0).is_const() &&
                             c.panel_bytes <= double(kPanelCaches * target_.cache_bytes);
    if (!is_worth_it) return false;
    const UOp before = sink_;
    const size_t done = opts_.size();
    int64_t vectors = target_.vector_registers >= 32 ? kTileVectors : kTileVectors / 2;
    const int64_t pieces = std::max<int64_t>(2, int64_t(target_.cores));
    while (vectors > 1 && high < pieces * vectors * lanes) vectors /= 2;
    for (const int64_t id : around) attempt(OptKind::kTile, id, most_places(range(id)));
    if (high % (vectors * lanes) != 0) attempt(OptKind::kPad, rows, vectors * lanes);
    attempt(OptKind::kVector, rows, lanes);
    if (vectors > 1) attempt(OptKind::kUpcast, rows, vectors);
    // As many sums as there are registers, less those of a step's factors.
    const int64_t copies = (int64_t(target_.vector_registers) - kTileVectors) / vectors;
    const int64_t along = fitting(copies, wide);
    attempt(OptKind::kUpcast, c.columns.range_id(), along);
    if (c.more_columns && c.more_columns.src(0).is_const() && copies / along > 1) {
      attempt(OptKind::kUpcast, c.more_columns.range_id(),
              fitting(copies / along, most_places(c.more_columns)));
    }
    thread({});
    if (attempt(OptKind::kStage, c.rows_argument, rows)) return true;
    sink_ = before;
    opts_.resize(done);
    look();
    return false;
  }

  // Of the last one.
  std::vector<UOp> loops_of_end() const {
    std::vector<UOp> out;
    for (UOp n : sink_.srcs()) {
      if (!n.is(Op::END)) continue;
      out.clear();
      for (UOp r : n.srcs().subspan(1)) {
        if (r.is(Op::RANGE)) out.push_back(r);
      }
    }
    return out;
  }
  bool reads_along(int64_t argument, UOp range) const {
    return std::ranges::any_of(accesses_, [&](UOp n) {
      return n.is(Op::LOAD) && place_of(n.src(0)).base.number() == argument &&
             is_in_scope(range, n);
    });
  }

  void tile_contraction(const Contraction& c) {
    if (turn_contraction(c)) return;
    const int64_t lanes = c.is_narrow ? lanes_for(c.columns) : lanes_in(c.columns);
    const int64_t columns = c.columns.range_id(), rows = c.rows.range_id();
    const int64_t wide = most_places(c.columns), high = most_places(c.rows);
    const bool is_constant = c.columns.src(0).is_const() && c.rows.src(0).is_const();
    const int64_t most_vectors = target_.vector_registers >= 32 ? kTileVectors : kTileVectors / 2;
    const int64_t vectors = std::min(most_vectors, (wide + lanes - 1) / lanes);
    if (is_constant && wide % (vectors * lanes) != 0) {
      attempt(OptKind::kPad, columns, vectors * lanes);
    }
    int64_t inner_rows = rows;
    if (const int64_t next = free_range_id(sink_);
        is_constant && attempt(OptKind::kTile, rows, high)) {
      inner_rows = next;  // all of it, inside of the columns
    }
    attempt(OptKind::kVector, columns, lanes);
    if (vectors > 1) attempt(OptKind::kUpcast, columns, vectors);
    // As many sums as there are registers, less those of a step's factors.
    const int64_t sums = (int64_t(target_.vector_registers) - most_vectors) / vectors;
    const int64_t more = vectors == 1 ? std::max(most_vectors, sums / std::min(high, kTileRows))
                                      : sums / std::min(high, kTileRows);
    if (more > 1 && c.more_columns && c.more_columns.src(0).is_const()) {
      const int64_t most = fitting(more, most_places(c.more_columns));
      if (most > 1) attempt(OptKind::kUpcast, c.more_columns.range_id(), most);
    }
    attempt(OptKind::kUpcast, inner_rows, std::min(high, kTileRows));
    thread({});
    if (!is_worth_packing(c)) return;
    // The columns may be all done in one go: then the loop around them is the one that fills.
    const UOp panel_loop = range(columns) ? range(columns) : loop_around(inner_rows);
    if (panel_loop) attempt(OptKind::kStage, c.panel, panel_loop.range_id());
  }

  // The loop outside of another one in what closes both.
  UOp loop_around(int64_t id) const {
    for (UOp n : sink_.srcs()) {
      UOp before;
      for (UOp r : n.srcs().subspan(n.is(Op::END) ? 1 : n.src_count())) {
        if (r.range_id() == id) return before;
        before = r;
      }
    }
    return {};
  }

  // ---- transpositions

  // One memory is read in order along one loop, another along another one.
  bool tile_transposition(UOp along) {
    if (!reductions_.empty()) return false;
    for (UOp n : accesses_) {
      if (step_of(n, along) == 1 || step_of(n, along) == 0) continue;
      for (UOp other : parallel_) {
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
    const int64_t id = r.range_id(), inner = free_range_id(sink_);
    if (most_places(r) < 2 * kCacheTile || !attempt(OptKind::kTile, id, kCacheTile)) return id;
    return inner;
  }

  // ---- vectors

  // Memory that is read and written in order along the loop, less that which is not, each access as
  // often as it runs.
  double order_along(UOp r) const {
    double score = 0;
    for (UOp n : accesses_) {
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
    for (UOp r : parallel_) {
      if (most_places(r) < 4) continue;
      const double score = order_along(r);
      // Of equals, the longer one.
      if (score > most || (best && score == most && most_places(r) > most_places(best)))
        best = r, most = score;
    }
    return best || !reductions_.empty() ? best : best_computed_range();
  }

  // Lanes that are read one by one, but written in order, with much to compute for each.
  UOp best_computed_range() const {
    UOp best;
    for (UOp r : parallel_) {
      if (most_places(r) < kLeastLanes || !writes_in_order(r)) continue;
      const int64_t reads = std::ranges::count_if(accesses_, [&](UOp n) {
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
    const bool is_all = !reductions_.empty() && left.src(0).is_const() && vectors <= copies;
    if (is_all && vectors > 1) {
      attempt(OptKind::kUpcast, id, vectors);
    } else if (copies >= 2 && vectors >= 2 * copies) {
      attempt(OptKind::kUpcast, id, copies);
    }
  }

  // Lines side by side, where they have much of the work in common: that is done once for them.
  bool share_across_lines(int64_t id, int64_t copies) {
    if (!reductions_.empty()) return false;
    const UOp along = range(id);
    UOp best;
    int64_t most = 0;
    for (UOp r : parallel_) {
      if (r == along || most_places(r) < 2 * copies) continue;
      const int64_t shared = std::ranges::count_if(order_, [&](UOp n) {
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
    const auto carried = std::ranges::find_if(order_, is_carried);
    if (carried == order_.end() || !reductions_.empty()) return;
    UOp lines;  // the innermost loop around it
    for (UOp r : loops_of_end()) {
      if (r.axis() == AxisType::kGlobal && is_in_scope(r, *carried)) lines = r;
    }
    if (!lines || nodes_in(lines) > kCopyNodes / kGroups) return;
    if (most_places(lines) >= 2 * kGroups) attempt(OptKind::kUpcast, lines.range_id(), kGroups);
  }

  void vectorize_reductions() {
    std::vector<int64_t> ids;
    ids.reserve(reductions_.size());
    for (UOp r : reductions_) ids.push_back(r.range_id());
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

  // ---- threads

  // The outermost loop that has work for all cores; a loop that will be cut further is given out in
  // pieces. Where no loop will be, one with work for some of the cores.
  void thread(UOp along) {
    if (target_.cores < 2 || work() < double(kThreadWork)) return;
    const int64_t cores = int64_t(target_.cores);
    if (thread_one(along, cores)) return;
    if (!along && !thread_one({}, (cores + 1) / 2)) thread_one({}, 2);
  }
  bool thread_one(UOp along, int64_t least) {
    for (UOp r : loops_of_end()) {
      if (most_places(r) < least || r.axis() != AxisType::kGlobal) continue;
      // Every thread would compute what stands outside of the loop.
      if (has_reduction_outside(r)) return false;
      // Whole cache lines, and as many as are worth a thread.
      const auto each = std::max<int64_t>(int64_t(work() / double(most_places(r))), 1);
      const int64_t lines = each < 4 ? 1024 : 64, fewest = std::max<int64_t>(lines, 4096 / each);
      const int64_t piece =
          (most_places(r) / (int64_t(target_.cores) * 4) + lines - 1) / lines * lines;
      const int64_t amount = r == along ? std::max(piece, fewest) : 0;
      if (attempt(OptKind::kThread, r.range_id(), amount)) return true;
    }
    return false;
  }

  bool has_reduction_outside(UOp loop) const {
    return std::ranges::any_of(order_,
                               [&](UOp n) { return n.is(Op::REDUCE) && !is_in_scope(loop, n); });
  }

  UOp sink_;
  const Target& target_;
  OptList opts_;
  std::vector<UOp> order_, accesses_, parallel_, reductions_;
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
