// REDUCE(ADD, a * b) becomes a lane of a register of sums:
//
//   WAIT, BARRIER; COMMIT(FETCHes of steps 0, 1, ...)
//   for step: WAIT, BARRIER; sums = WMMA(sums, tile of a, tile of b); COMMIT(FETCHes of step +
//   ahead)
//
// A thread holds of the results what WMMA gives it.
#include "codegen/opt/tensor_tiles.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/opt/loops.h"
#include "codegen/opt/tile_boxes.h"
#include "codegen/opt/tile_factors.h"
#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/linear.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr int64_t kMostTogether = 8;  // rows of tiles that are walked side by side

// Tiles of so many steps lie in local memory. What step i multiplies may be read until step i + 2
// has waited, so that fetches run stages - 2 steps ahead.
int64_t stages_of(int64_t columns) { return columns == 128 ? 3 : 4; }

int64_t size_of(UOp range) { return range.src(0).const_int(); }

// ---- finding

bool is_zero_unless(UOp read, UOp condition) {
  if (!read.is(Op::LOAD) || read.src_count() != 3 || !is_zero(read.src(2))) return false;
  const std::vector<UOp> given = conditions_of(read.src(1)), needed = conditions_of(condition);
  return std::ranges::all_of(needed,
                             [&](UOp n) { return std::ranges::find(given, n) != given.end(); });
}

UOp only_reduce(UOp sink) {
  UOp only;
  for (UOp n : toposort(sink)) {
    if (!n.is(Op::REDUCE)) continue;
    if (only) return {};
    only = n;
  }
  return only;
}

bool writes_in_order(UOp sink, UOp r) {
  for (UOp n : toposort(sink)) {
    if (n.is(Op::STORE) && !is_register(n.src(0)) && step_of(n, r) != 1) return false;
  }
  return true;
}

// Whether a condition is about nothing but places of what is summed: then both factors have it.
bool is_of_sum(UOp condition, UOp reduce) {
  return std::ranges::all_of(ranges_of(condition), [&](UOp r) {
    return std::ranges::find(reduce.srcs().subspan(1), r) != reduce.srcs().end();
  });
}

int64_t steps_for(int64_t places) { return (places + kTileDepth - 1) / kTileDepth; }

// Places of all that is summed over.
int64_t places_of_sum(const TileContraction& c) {
  int64_t all = 1;
  for (UOp r : c.reduce.srcs().subspan(1)) all *= size_of(r);
  return all;
}

// ---- making

class Tiler {
 public:
  Tiler(UOp sink, const TileContraction& c, int64_t columns, TileCopies copies)
      : arena_(sink.arena()), sink_(sink), c_(c), columns_(columns), copies_(copies) {
    next_id_ = free_range_id(sink);
    stages_ = stages_of(columns);
    step_elements_ = (kTileRows + columns) * kTileDepth;
    if (is_summed_as_one(c)) {
      sum_as_one();
      return;
    }
    for (UOp r : c.reduce.srcs().subspan(1)) {
      if (r != c.sum) others_.push_back(r);
    }
    steps_of_sum_ = size_of(c.sum) / kTileDepth;
    steps_ = steps_of_sum_;
    for (UOp r : others_) steps_ *= size_of(r);
  }

  UOp run() {
    const UOp tile = give_out_tiles();
    warp_ = new_range(kTileThreads / 32, AxisType::kLocal);
    const UOp y = new_range(8, AxisType::kLocal), x = new_range(4, AxisType::kLocal);
    thread_ = (warp_ * 8 + y) * 4 + x;
    const UOp half = new_range(2, AxisType::kUpcast),
              eighth = new_range(columns_ / 8, AxisType::kUpcast),
              lane = new_range(2, AxisType::kLane);
    std::vector<UOp> around;
    for (UOp r : loops_of_all(sink_)) {
      if (r != c_.rows && r != c_.columns) around.push_back(r);
    }
    if (tile) around.push_back(tile);
    around.insert(around.end(), {warp_, y, x});

    const UOp done = multiply(around);
    const UOp result =
        arena_.make(Op::LANE, dtypes::float32, {after(sums_, done), eighth * 4 + half * 2 + lane});
    const std::array places = {std::pair(c_.rows, first_row_ + warp_ * 16 + half * 8 + y),
                               std::pair(c_.columns, first_column_ + eighth * 8 + x * 2 + lane)};
    std::vector<UOp> ends;
    for (UOp e : sink_.srcs()) {
      std::vector<UOp> srcs{replace_ranges(with_result(e.src(0), result, done), places)};
      srcs.insert(srcs.end(), around.begin(), around.end());
      srcs.insert(srcs.end(), {half, eighth, lane});
      ends.push_back(arena_.with_srcs(e, srcs));
    }
    return arena_.with_srcs(sink_, ends);
  }

 private:
  UOp new_range(int64_t size, AxisType axis) {
    return arena_.make(Op::RANGE, dtypes::index, {index_const(arena_, size)},
                       Arg::range(next_id_++, axis));
  }

  // One range of all places, zeros past its end.
  void sum_as_one() {
    const int64_t all = places_of_sum(c_);
    steps_of_sum_ = steps_ = std::max<int64_t>(steps_for(all), 2);
    const UOp as_one = new_range(all, AxisType::kReduce);
    std::vector<std::pair<UOp, UOp>> places;
    int64_t inner = 1;
    for (size_t i = c_.reduce.src_count(); i-- > 1;) {
      const UOp r = c_.reduce.src(i);
      places.emplace_back(r, simplify(as_one / inner % size_of(r)));
      inner *= size_of(r);
    }
    const UOp gate = as_one < all;
    const bool is_whole = all == steps_ * kTileDepth;
    for (UOp* half : {&c_.a, &c_.b}) {
      const UOp value = simplify(replace_ranges(*half, places), nullptr, Loads::kStay);
      *half = is_whole ? value : read_only_if(value, gate);
    }
    c_.sum = as_one;
  }

  // Tiles in an order in which those that run at the same time share rows and columns; null when
  // there is only one.
  UOp give_out_tiles() {
    const int64_t high = size_of(c_.rows) / kTileRows, wide = size_of(c_.columns) / columns_;
    int64_t together = kMostTogether;
    while (high % together != 0) together /= 2;
    const UOp tile = high * wide > 1 ? new_range(high * wide, AxisType::kGlobal) : UOp();
    const UOp at = tile ? tile : index_const(arena_, 0);
    const UOp band = at / (together * wide), in_band = at % (together * wide);
    first_row_ = simplify((band * together + in_band % together) * kTileRows);
    first_column_ = simplify(in_band / together * columns_);
    return tile;
  }

  // The loop over the steps.
  UOp multiply(std::span<const UOp> around) {
    factors_ = {tile_factor(c_.a, c_.rows, c_.sum, copies_),
                tile_factor(c_.b, c_.columns, c_.sum, copies_)};
    local_ = define_local(arena_, c_.a.dtype(), stages_ * step_elements_, arena_.fresh_id());
    const DType type = dtypes::float32.vec(uint16_t(columns_ / 2));
    sums_ = arena_.make(Op::DEFINE_REG, type, {}, Arg::integer(arena_.fresh_id()));
    const UOp zeros = arena_.make(Op::CONST, type, {}, Arg::bits(0));
    const UOp started = after(sums_, around).assign(zeros);
    // A group may have multiplied another tile before.
    const UOp idle = arena_.make(Op::WAIT, dtypes::void_, {started}, Arg::integer(0));
    UOp fetched = arena_.make(Op::BARRIER, dtypes::void_, {idle});
    const int64_t ahead = stages_ - 2;
    for (int64_t s = 0; s < ahead; s++) fetched = fetch(index_const(arena_, s), fetched);

    const UOp step = new_range(steps_, AxisType::kLoop);
    const UOp wait = arena_.make(Op::WAIT, dtypes::void_, {fetched, step}, Arg::integer(ahead - 1));
    const UOp ready = arena_.make(Op::BARRIER, dtypes::void_, {wait});
    const UOp tiles = after(local_, ready), at = step % stages_ * step_elements_;
    const std::array waits = {started, step};
    const UOp before = after(sums_, waits);
    const UOp a = index(tiles, at + warp_ / 4 * kTileBlock),
              b = index(tiles, at + kTileRows * kTileDepth);
    const UOp product =
        arena_.make(Op::WMMA, type, {before, a, b, thread_ % 128},
                    Arg::ints(std::array<int64_t, 3>{columns_, factors_[0].is_transposed ? 1 : 0,
                                                     factors_[1].is_transposed ? 1 : 0}));
    return end(fetch(step + ahead, before.assign(product)), step);
  }

  // The tiles of a step, once what `earlier` does is done; zeros past the last one.
  UOp fetch(UOp step, UOp earlier) {
    const UOp local = after(local_, earlier), at = step % stages_ * step_elements_;
    std::vector<std::pair<UOp, UOp>> others;
    UOp left = step / steps_of_sum_;
    for (size_t i = others_.size(); i-- > 0;) {
      others.emplace_back(others_[i], simplify(i == 0 ? left : left % size_of(others_[i])));
      left = left / size_of(others_[i]);
    }
    const UOp depth = step % steps_of_sum_ * kTileDepth, gate = simplify(step < steps_);
    TileFetcher fetcher(arena_, thread_, next_id_);
    std::vector<UOp> all;
    fetcher.fetch(factors_[0], {first_row_, depth, kTileRows, others, gate}, local, at, all);
    fetcher.fetch(factors_[1], {first_column_, depth, columns_, others, gate}, local,
                  at + kTileRows * kTileDepth, all);
    return arena_.make(Op::COMMIT, dtypes::void_, all);
  }

  // The body with the result for the REDUCE; what it reads of memory, it reads afterwards, when
  // registers are free.
  UOp with_result(UOp body, UOp result, UOp done) const {
    return rebuild(body, [&](UOp n, std::span<const UOp> srcs) {
      if (n == c_.reduce) return result;
      const bool is_read =
          n.is(Op::LOAD) && srcs[0].is(Op::INDEX) && srcs[0].src(0).is(Op::DEFINE_GLOBAL);
      const bool is_of_sum = std::ranges::any_of(c_.reduce.srcs().subspan(1),
                                                 [&](UOp r) { return is_in_scope(r, n); });
      if (!is_read || is_of_sum) return arena_.with_srcs(n, srcs);
      std::vector<UOp> all(srcs.begin(), srcs.end());
      all[0] = index(after(srcs[0].src(0), done), srcs[0].src(1));
      return arena_.with_srcs(n, all);
    });
  }

  Arena& arena_;
  UOp sink_;
  TileContraction c_;
  int64_t columns_;
  TileCopies copies_;
  int64_t next_id_, stages_, step_elements_, steps_of_sum_, steps_;
  std::vector<UOp> others_;
  UOp first_row_, first_column_, warp_, thread_, local_, sums_;
  std::vector<TileFactor> factors_;
};

}  // namespace

std::vector<UOp> loops_of_all(UOp sink) {
  std::vector<UOp> out;
  for (UOp e : sink.srcs()) {
    if (!e.is(Op::END)) return {};
    const std::vector<UOp> loops(e.srcs().begin() + 1, e.srcs().end());
    if (out.empty()) out = loops;
    if (!std::ranges::is_permutation(out, loops)) return {};
  }
  return out;
}

FoundContraction find_tile_contraction(UOp sink, int64_t axis) {
  const auto none = [](const char* why) { return FoundContraction{{}, why}; };
  const UOp sum = range_by_id(sink, axis);
  if (!sum) return none("there is no such loop");
  const UOp reduce = only_reduce(sink);
  const std::vector<UOp> loops = loops_of_all(sink);
  if (loops.empty() || !reduce ||
      std::ranges::find(reduce.srcs().subspan(1), sum) == reduce.srcs().end() ||
      reduce.arg_op() != Op::ADD || reduce.dtype() != dtypes::float32) {
    return none(
        "it is not the loop of the only sum, in float32, of a kernel with one set of loops");
  }
  const bool is_known = std::ranges::all_of(reduce.srcs().subspan(1), [](UOp r) {
    return r.axis() == AxisType::kReduce && r.src(0).is_const();
  });
  const bool is_bare =
      std::ranges::all_of(loops, [](UOp r) { return r.axis() == AxisType::kGlobal; });
  if (!is_known || !is_bare) return none("loops of it are cut already, or of no constant size");
  UOp product = reduce.src(0), condition;
  if (product.is(Op::WHERE) && is_zero(product.src(2))) {
    condition = product.src(0);
    product = product.src(1);
  }
  if (!product.is(Op::MUL)) return none("what it sums is no product");
  std::array halves = {half_of(product.src(0)), half_of(product.src(1))};
  if (!halves[0] || !halves[1] || halves[0].dtype() != halves[1].dtype()) {
    return none("the factors are not of one dtype, float16 or bfloat16");
  }
  if (condition &&
      !(is_zero_unless(halves[0], condition) && is_zero_unless(halves[1], condition))) {
    if (!is_of_sum(condition, reduce)) return none("what it sums depends on a condition");
    for (UOp& half : halves) {
      if (is_zero_unless(half, condition)) continue;
      half = where(condition, half, half.arena().make(Op::CONST, half.dtype(), {}, Arg::bits(0)));
    }
  }
  TileContraction c{reduce, {}, {}, sum, halves[0], halves[1]};
  const auto is_better = [&](UOp half, UOp r, UOp best) {
    if (!best) return true;
    const bool is_copied = is_fetched_along(half, sum) || is_fetched_along(half, r);
    const bool was_copied = is_fetched_along(half, sum) || is_fetched_along(half, best);
    return is_copied != was_copied ? is_copied : size_of(r) > size_of(best);
  };
  for (const auto& [a, b] : {std::pair(halves[0], halves[1]), std::pair(halves[1], halves[0])}) {
    UOp rows, columns;
    for (UOp r : loops) {
      const bool in_a = is_in_scope(r, a), in_b = is_in_scope(r, b);
      if (!r.src(0).is_const() || in_a == in_b) continue;
      if (in_b && writes_in_order(sink, r)) columns = r;
      if (in_a && is_better(a, r, rows)) rows = r;
    }
    if (rows && columns) c.rows = rows, c.columns = columns, c.a = a, c.b = b;
  }
  if (!c.rows) return none("there are no rows of one factor and columns of the other");
  return {c, {}};
}

bool is_summed_as_one(const TileContraction& c) {
  const int64_t all = places_of_sum(c),
                one_by_one = all / size_of(c.sum) * steps_for(size_of(c.sum));
  return c.reduce.src_count() > 2 && 2 * one_by_one >= 3 * steps_for(all);
}

int64_t tile_bytes(int64_t columns) {
  return stages_of(columns) * (kTileRows + columns) * kTileDepth * 2;
}

std::string why_not_tiles(UOp sink, int64_t axis, int64_t columns, TileCopies copies) {
  if (columns != 64 && columns != 128 && columns != 256) return "columns are 64, 128 or 256";
  const FoundContraction found = find_tile_contraction(sink, axis);
  if (!found.why_not.empty()) return found.why_not;
  const TileContraction& c = found.contraction;
  const bool is_as_one = is_summed_as_one(c);
  if (size_of(c.rows) % kTileRows != 0 || size_of(c.columns) % columns != 0 ||
      (size_of(c.sum) % kTileDepth != 0 && !is_as_one)) {
    return "the loops are not made of whole tiles";
  }
  if (is_as_one)
    return copies == TileCopies::kBoxes ? "no factor is an array of up to five axes" : "";
  int64_t steps = size_of(c.sum) / kTileDepth;
  for (UOp r : c.reduce.srcs().subspan(1)) steps *= r == c.sum ? 1 : size_of(r);
  if (steps < 2) return "there is one step alone";
  const bool has_box = tile_factor(c.a, c.rows, c.sum, copies).array ||
                       tile_factor(c.b, c.columns, c.sum, copies).array;
  return copies == TileCopies::kBoxes && !has_box ? "no factor is an array of up to five axes" : "";
}

UOp tensor_tiles(UOp sink, int64_t axis, int64_t columns, TileCopies copies) {
  return Tiler(sink, find_tile_contraction(sink, axis).contraction, columns, copies).run();
}

}  // namespace weft
