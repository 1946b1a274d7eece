// A reduction over a block is one of a thread's own elements, then of the four threads that share a
// row:
//
//   results = identities;  COMMIT(FETCHes of a, of block 0)
//   for block:
//     WAIT, BARRIER; COMMIT(FETCHes of block + 1)
//     scores = WMMA(0, a, b)
//     m' = max(m, scores of the row);  c = e(m - m');  p = e(scores - m')
//     l = l * c + p;  o = WMMA(o * c, p, v);  m = m'
//   data[...] = f(o, l, m)
//
// What a thread has of a tile is spelled out element by element.
#include "codegen/opt/merged_tiles.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/opt/loops.h"
#include "codegen/opt/tile_factors.h"
#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scalar.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "schedule/rangeify/merge_rules.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr int64_t kShared = 4;  // threads that share a row
// With more columns, the registers of a multiprocessor hold one group, in which products and what
// is done with their results go on side by side.
constexpr int64_t kMostOfTwoGroups = 64;

bool is_multiplied_ahead(int64_t columns) { return columns > kMostOfTwoGroups; }
// Blocks in local memory: one is used, the others are fetched; scores that are multiplied ahead are
// of one block more. What a product with a held factor reads is free at the next WAIT.
int64_t stages_of(int64_t columns) { return is_multiplied_ahead(columns) ? 3 : 2; }

int64_t size_of(UOp range) { return range.src(0).const_int(); }
int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
bool has(std::span<const UOp> list, UOp n) { return std::ranges::find(list, n) != list.end(); }

// ---- making

// What is subtracted in exponentials, and what the sums so far are multiplied by.
struct Base {
  const MergedReduction* of;
  Op function;
  std::array<UOp, 2> base, factor;  // of the two rows of a thread
};

class Writer {
 public:
  Writer(UOp sink, MergedTiles tiles, int64_t block, TileCopies copies)
      : arena_(sink.arena()), t_(std::move(tiles)), block_(block), copies_(copies) {
    next_id_ = free_range_id(sink);
    places_ = size_of(t_.along);
    columns_ = rounded_up(size_of(t_.columns), kTileSide);
    is_ahead_ = is_multiplied_ahead(columns_);
    stages_ = stages_of(columns_);
  }

  UOp run() {
    make_loops();
    make_factors();
    const UOp done = loop();
    return sink(arena_, write(done));
  }

 private:
  UOp new_range(UOp size, AxisType axis) {
    return arena_.make(Op::RANGE, dtypes::index, {size}, Arg::range(next_id_++, axis));
  }
  UOp new_range(int64_t size, AxisType axis) { return new_range(index_const(arena_, size), axis); }
  UOp number(int64_t n) const { return index_const(arena_, n); }
  UOp new_register(DType type) {
    return arena_.make(Op::DEFINE_REG, type, {}, Arg::integer(arena_.fresh_id()));
  }
  UOp vector_of(std::span<const UOp> lanes) const {
    return arena_.make(Op::VECTORIZE, lanes[0].dtype().vec(uint16_t(lanes.size())), lanes);
  }
  UOp lane(UOp vector, int64_t at) const { return gep(vector, std::array{at}); }

  // ---- groups and threads

  void make_loops() {
    const int64_t high = (size_of(t_.rows) + kTileRows - 1) / kTileRows;
    for (UOp r : t_.ends[0].srcs().subspan(1)) {
      if (r != t_.rows && r != t_.columns) around_.push_back(r);
    }
    end_ = end_of_places(t_.reductions, t_.along);
    const UOp tile = high > 1 ? new_range(high, AxisType::kGlobal) : number(0);
    // Those with the most blocks begin.
    first_row_ = simplify((end_ ? number(high - 1) - tile : tile) * kTileRows);
    warp_ = new_range(kTileThreads / 32, AxisType::kLocal);
    y_ = new_range(8, AxisType::kLocal), x_ = new_range(kShared, AxisType::kLocal);
    if (high > 1) around_.push_back(tile);
    around_.insert(around_.end(), {warp_, y_, x_});
    thread_ = (warp_ * 8 + y_) * 4 + x_;
    blocks_ = number((places_ + block_ - 1) / block_);
    if (!end_) return;
    const UOp last = min(first_row_ + (kTileRows - 1), number(size_of(t_.rows) - 1));
    const std::pair<UOp, UOp> place{t_.rows, last};
    const UOp until = replace_ranges(end_, {&place, 1});
    blocks_ = simplify(min(max((until + (block_ - 1)) / block_, number(0)), blocks_));
  }

  UOp own_row(UOp half) const { return warp_ * 16 + half * 8 + y_; }
  UOp own_row(int64_t half) const { return own_row(number(half)); }

  // ---- factors

  // Zeros past the ends of both axes.
  TileFactor factor(UOp half, UOp across, UOp sum, int64_t count) const {
    UOp gate;
    for (const auto& [range, places] : {std::pair(across, count), std::pair(sum, kTileDepth)}) {
      if (size_of(range) % places == 0) continue;
      const UOp own = range < size_of(range);
      gate = gate ? gate & own : own;
    }
    return tile_factor(gate ? read_only_if(half, gate) : half, across, sum, copies_);
  }

  void make_factors() {
    for (const TileProduct& p : t_.scores) {
      const int64_t depth = rounded_up(size_of(p.sum), kTileDepth);
      first_.push_back({factor(p.a, t_.rows, p.sum, kTileRows), depth, first_elements_});
      first_elements_ += depth * kTileRows;
      second_.push_back({factor(p.b, t_.along, p.sum, block_), depth, block_elements_});
      block_elements_ += depth * block_;
    }
    for (const auto& p : t_.products) {
      if (!p) continue;
      products_.push_back({factor(p->b, t_.columns, t_.along, columns_), block_, block_elements_});
      block_elements_ += block_ * columns_;
    }
    local_ = define_local(arena_, t_.scores[0].a.dtype(),
                          first_elements_ + stages_ * block_elements_, arena_.fresh_id());
  }

  struct Part {
    TileFactor factor;
    int64_t depth;   // of it that is in local memory
    int64_t offset;  // there
  };

  // The tiles of a part, from a place across on.
  void fetch(TileFetcher& fetcher, const Part& part, UOp first, UOp depth, int64_t count, UOp local,
             UOp at, UOp gate, std::vector<UOp>& out) const {
    for (int64_t d = 0; d < part.depth; d += kTileDepth) {
      fetcher.fetch(part.factor, {first, depth + d, count, {}, gate}, local,
                    at + part.offset + d * count, out);
    }
  }

  UOp fetch_block(UOp block, UOp earlier, bool with_first) {
    TileFetcher fetcher(arena_, thread_, next_id_);
    const UOp local = after(local_, earlier), gate = simplify(block < blocks_);
    const UOp at = block % stages_ * block_elements_ + first_elements_;
    std::vector<UOp> all;
    if (with_first) {
      const UOp always = bool_const(arena_, true);
      for (const Part& part : first_)
        fetch(fetcher, part, first_row_, number(0), kTileRows, local, number(0), always, all);
    }
    for (const Part& part : second_)
      fetch(fetcher, part, block * block_, number(0), block_, local, at, gate, all);
    for (const Part& part : products_)
      fetch(fetcher, part, number(0), block * block_, columns_, local, at, gate, all);
    return arena_.make(Op::COMMIT, dtypes::void_, all);
  }

  // ---- the loop

  // A register of sums, or one for each row of a thread.
  struct State {
    UOp memory, started;
    UOp old, now;  // in the loop
  };

  UOp loop() {
    for (size_t i = 0; i < t_.reductions.size(); i++) start(i);
    std::vector<UOp> starts;
    for (const auto& of_reduction : states_) {
      for (const State& s : of_reduction) starts.push_back(s.started);
    }
    // A group may have multiplied another tile before.
    const UOp idle = arena_.make(Op::WAIT, dtypes::void_, starts, Arg::integer(0));
    const UOp ready = arena_.make(Op::BARRIER, dtypes::void_, {idle});
    const UOp fetched = fetch_block(number(0), ready, true);
    step_ = new_range(blocks_, AxisType::kLoop);
    if (is_ahead_) {
      multiply_ahead(fetched);
    } else {
      const UOp next = fetch_block(step_ + 1, arrived(std::array{fetched, step_}), false);
      tiles_ = after(local_, next);
      for (const Part& part : second_) {
        const UOp sums = kept_scores(multiply_scores(part, step_), std::array{step_});
        scores_.emplace_back();
        for (int64_t l = 0; l < block_ / 2; l++) scores_.back().push_back(lane(sums, l));
      }
    }
    for (auto& of_reduction : states_) {
      for (State& s : of_reduction) s.old = after(s.memory, std::array{s.started, step_});
    }
    for (size_t i = 0; i < states_.size(); i++) reduce_block(i);
    // One END closes the loop: the last write comes after all others.
    std::vector<State> all;
    for (const auto& of_reduction : states_)
      all.insert(all.end(), of_reduction.begin(), of_reduction.end());
    std::vector<UOp> waits{all.back().started, step_};
    waits.insert(waits.end(), taken_.begin(), taken_.end());
    for (size_t i = 0; i + 1 < all.size(); i++) waits.push_back(all[i].old.assign(all[i].now));
    return end(after(all.back().memory, waits).assign(all.back().now), step_);
  }

  void start(size_t i) {
    const UOp reduce = t_.reductions[i].reduce;
    const bool is_product = t_.products[i].has_value();
    const DType type = is_product ? reduce.dtype().vec(uint16_t(columns_ / 2)) : reduce.dtype();
    const uint64_t bits = *identity_bits(reduce.arg_op(), reduce.dtype());
    const UOp identity = arena_.make(Op::CONST, type, {}, Arg::bits(bits));
    states_.emplace_back();
    for (int k = 0; k < (is_product ? 1 : 2); k++) {
      const UOp memory = new_register(type);
      states_.back().push_back({memory, after(memory, around_).assign(identity), {}, {}});
    }
  }

  // What was fetched is there, for all threads.
  UOp arrived(std::span<const UOp> waits) const {
    const UOp wait = arena_.make(Op::WAIT, dtypes::void_, waits, Arg::integer(0));
    return arena_.make(Op::BARRIER, dtypes::void_, {wait});
  }

  // The scores of a block are multiplied while those of the block before are used: those that are
  // used are kept apart from those that are under way.
  void multiply_ahead(UOp fetched) {
    const UOp before = fetch_block(number(1), arrived(std::array{fetched}), false);
    tiles_ = after(local_, before);
    std::vector<UOp> kept, waits;
    for (const Part& part : second_) {
      const UOp first = kept_scores(multiply_scores(part, number(0)), around_);
      for (int64_t l = 0; l < block_ / 2; l++) {
        kept.push_back(new_register(dtypes::float32));
        waits.push_back(after(kept.back(), around_).assign(lane(first, l)));
      }
    }
    waits.push_back(before);
    waits.push_back(step_);
    for (size_t k = 0; k < kept.size(); k++) {
      if (k % size_t(block_ / 2) == 0) scores_.emplace_back();
      scores_.back().push_back(after(kept[k], waits));
    }
    const UOp next = fetch_block(step_ + 2, arrived(waits), false);
    tiles_ = after(local_, next);
    // Past the last block it is that one again, for nothing.
    const UOp block = min(step_ + 1, blocks_ - 1);
    for (const Part& part : second_)
      next_scores_.push_back(kept_scores(multiply_scores(part, block), std::array{step_}));
    for (UOp scores : next_scores_) ahead_.push_back(scores.src(1));
  }

  UOp multiply_scores(const Part& second, UOp block) const {
    const auto k = size_t(&second - second_.data());
    const DType type = dtypes::float32.vec(uint16_t(block_ / 2));
    UOp sums = arena_.make(Op::CONST, type, {}, Arg::bits(0));
    const UOp at = block % stages_ * block_elements_ + (first_elements_ + second.offset);
    for (int64_t d = 0; d < second.depth; d += kTileDepth) {
      const UOp a =
          index(tiles_, simplify(warp_ / 4 * kTileBlock + (first_[k].offset + d * kTileRows)));
      const UOp b = index(tiles_, simplify(at + d * block_));
      sums = product(sums, a, b, first_[k].factor.is_transposed, second.factor.is_transposed);
    }
    return sums;
  }
  UOp kept_scores(UOp sums, std::span<const UOp> loops) {
    const UOp memory = new_register(sums.dtype());
    return after(memory, after(memory, loops).assign(sums));
  }

  UOp product(UOp sums, UOp a, UOp b, bool is_a_transposed, bool is_b_transposed) const {
    const auto columns = int64_t(sums.dtype().lanes) * 2;
    return arena_.make(Op::WMMA, sums.dtype(), {sums, a, b, thread_ % 128},
                       Arg::ints(std::array<int64_t, 3>{columns, int64_t(is_a_transposed),
                                                        int64_t(is_b_transposed)}));
  }

  // A formula of a row and a place of the block, as the thread has it.
  UOp element(UOp n, int64_t half, int64_t at) const {
    std::vector<std::pair<UOp, UOp>> pairs;
    for (const Base& b : bases_) pairs.emplace_back(b.of->base, b.base[size_t(half)]);
    for (size_t k = 0; k < scores_.size(); k++) {
      pairs.emplace_back(t_.scores[k].reduce, scores_[k][size_t(at / 2 * 4 + half * 2 + at % 2)]);
    }
    const UOp row = first_row_ + own_row(half), place = place_of_block(at);
    const std::array to = {std::pair(t_.rows, row), std::pair(t_.along, place)};
    return replace_ranges(substitute(gated_reads(n), pairs), to);
  }
  UOp place_of_block(int64_t at) const { return step_ * block_ + (x_ * 2 + (at / 2 * 8 + at % 2)); }

  // Reads of what is neither a row nor a place are not done.
  UOp gated_reads(UOp n) const {
    std::vector<UOp> gates;
    if (size_of(t_.rows) % kTileRows != 0) gates.push_back(t_.rows < size_of(t_.rows));
    if (places_ % block_ != 0) gates.push_back(t_.along < places_);
    if (gates.empty()) return n;
    const UOp gate = gates.size() == 1 ? gates[0] : gates[0] & gates[1];
    std::vector<UOp> kept;
    for (const TileProduct& p : t_.scores) kept.push_back(p.reduce);
    for (const Base& b : bases_) kept.push_back(b.of->base);
    const auto is_kept = [&](UOp s) { return has(kept, s); };
    return rebuild_part(n, is_kept, [&](UOp s, std::span<const UOp> srcs) {
      const UOp made = arena_.with_srcs(s, srcs);
      return s.is(Op::LOAD) && !is_register(s.src(0)) ? read_only_if_here(made, gate) : made;
    });
  }
  UOp read_only_if_here(UOp read, UOp gate) const {
    if (gate.is_const()) return read;
    const UOp zero = arena_.make(Op::CONST, read.dtype(), {}, Arg::bits(0));
    return read.src_count() == 3 ? load(read.src(0), read.src(1) & gate, read.src(2))
                                 : load(read.src(0), gate, zero);
  }

  // The identity past the end of the range.
  UOp counted(UOp value, int64_t at, uint64_t identity) const {
    if (places_ % block_ == 0) return value;
    return where(place_of_block(at) < places_, value,
                 constant_bits(arena_, value.dtype(), identity));
  }

  UOp combined(Op op, UOp a, UOp b) const { return arena_.make(op, a.dtype(), {a, b}); }

  // Of the elements of a row that a thread has: neighbours first.
  UOp reduced(const MergedReduction& r, int64_t half) const {
    const uint64_t identity = *identity_bits(r.reduce.arg_op(), r.reduce.dtype());
    std::vector<UOp> all;
    for (int64_t at = 0; at < block_ / 4; at++)
      all.push_back(counted(element(r.body, half, at), at, identity));
    while (all.size() > 1) {
      for (size_t i = 0; i < all.size() / 2; i++)
        all[i] = combined(r.reduce.arg_op(), all[2 * i], all[2 * i + 1]);
      all.resize(all.size() / 2);
    }
    return all[0];
  }

  // What the threads of a row have, as one, of both rows of a thread.
  std::array<UOp, 2> shared(Op op, std::array<UOp, 2> own, std::span<const UOp> waits) {
    // Written before either is read: one barrier is enough for both.
    const int64_t quads = kTileThreads / kShared;
    std::array<UOp, 2> memory, out;
    std::vector<UOp> stores;
    const UOp quad = (warp_ * 8 + y_) * kShared;
    for (const size_t half : {0, 1}) {
      memory[half] = define_local(arena_, own[half].dtype(), quads * kShared, arena_.fresh_id());
      stores.push_back(index(after(memory[half], waits), quad + x_).assign(own[half]));
    }
    for (const size_t half : {0, 1}) {
      const UOp filled = after(memory[half], stores);
      for (int64_t k = 0; k < kShared; k++) {
        const UOp one = load(index(filled, quad + k));
        out[half] = k == 0 ? one : combined(op, out[half], one);
      }
    }
    return out;
  }

  bool is_base(size_t i) const {
    return std::ranges::any_of(t_.reductions, [&](const MergedReduction& r) {
      return r.correction == Correction::kExponentials && r.on == i;
    });
  }

  void reduce_block(size_t i) {
    const MergedReduction& r = t_.reductions[i];
    const Base* base = r.correction == Correction::kExponentials ? &base_of(r) : nullptr;
    if (t_.products[i]) return add_products(i, base);
    const Op op = r.reduce.arg_op();
    std::array<UOp, 2> now{reduced(r, 0), reduced(r, 1)};
    if (is_base(i)) {
      std::vector<UOp> waits{step_};
      waits.insert(waits.end(), ahead_.begin(), ahead_.end());
      now = shared(op, now, waits);
    }
    for (const int64_t half : {0, 1}) {
      UOp old = states_[i][size_t(half)].old;
      if (base != nullptr) old = old * base->factor[size_t(half)];
      now[size_t(half)] = combined(op, old, now[size_t(half)]);
    }
    if (is_base(i)) add_bases(i, now);
    for (const size_t half : {0, 1}) states_[i][half].now = now[half];
  }

  // Those that were under way are those of the next block, before another product begins.
  void take_next_scores() {
    if (!is_ahead_ || !taken_.empty()) return;
    // What is done with those of this block comes first: their products go on beside it.
    std::vector<UOp> done = ahead_;
    for (const auto& of_reduction : states_) {
      for (const State& s : of_reduction) {
        if (s.now && of_reduction.size() > 1) done.push_back(s.old.assign(s.now));
      }
    }
    for (size_t k = 0; k < scores_.size(); k++) {
      const UOp next = after(next_scores_[k].src(0), done);
      for (size_t l = 0; l < scores_[k].size(); l++)
        taken_.push_back(scores_[k][l].assign(lane(next, int64_t(l))));
    }
  }

  // Four lanes of a register of sums are of two rows and two columns.
  void add_products(size_t i, const Base* base) {
    const TileProduct& p = *t_.products[i];
    take_next_scores();
    UOp sums = states_[i][0].old;
    if (base != nullptr) {
      std::vector<UOp> lanes;
      for (int64_t l = 0; l < columns_ / 2; l++)
        lanes.push_back(lane(sums, l) * base->factor[size_t(l / 2 % 2)]);
      sums = vector_of(lanes);
    }
    const size_t k = size_t(std::count_if(t_.products.begin(), t_.products.begin() + ptrdiff_t(i),
                                          [](const auto& q) { return q.has_value(); }));
    const Part& part = products_[k];
    const UOp at = step_ % stages_ * block_elements_ + (first_elements_ + part.offset);
    for (int64_t d = 0; d < block_; d += kTileDepth) {
      std::vector<UOp> of_a;
      for (int64_t l = 0; l < kTileDepth / 2; l++) {
        const int64_t half = l / 2 % 2, place = d / 4 + l / 4 * 2 + l % 2;
        of_a.push_back(counted(element(p.a, half, place), place, 0));
      }
      const UOp tiles = taken_.empty() ? tiles_ : after(tiles_, taken_);
      const UOp b = index(tiles, simplify(at + d * columns_));
      sums = product(sums, vector_of(of_a), b, false, part.factor.is_transposed);
    }
    states_[i][0].now = sums;
  }

  // ---- exponentials

  UOp is_lowest(UOp x) const {
    return equal(x, constant(arena_, x.dtype(), -std::numeric_limits<double>::infinity()));
  }

  // The base of what is lower than all is 0, and what has been summed up to there is 0.
  void add_bases(size_t i, const std::array<UOp, 2>& now) {
    for (const MergedReduction& r : t_.reductions) {
      if (r.correction != Correction::kExponentials || r.on != i || find_base(r)) continue;
      const UOp maximum = t_.reductions[i].reduce;
      const auto in_terms_of = [&](UOp m) {
        const std::pair<UOp, UOp> pair{maximum, m};
        return substitute(r.base, {&pair, 1});
      };
      Base b{&r, exponential_of(r), {}, {}};
      for (const int64_t half : {0, 1}) {
        const UOp m = now[size_t(half)], old = states_[i][size_t(half)].old;
        const UOp zero = constant_bits(arena_, r.base.dtype(), 0);
        const UOp base = where(is_lowest(m), zero, in_terms_of(m));
        UOp factor = unary(b.function, in_terms_of(old) - base);
        if (factor.dtype() != r.reduce.dtype()) factor = cast(factor, r.reduce.dtype());
        b.base[size_t(half)] = base;
        b.factor[size_t(half)] =
            where(is_lowest(old), constant_bits(arena_, factor.dtype(), 0), factor);
      }
      bases_.push_back(b);
    }
  }
  const Base* find_base(const MergedReduction& r) const {
    for (const Base& b : bases_) {
      if (b.of->on == r.on && b.of->base == r.base && b.function == exponential_of(r)) return &b;
    }
    return nullptr;
  }
  const Base& base_of(const MergedReduction& r) const { return *find_base(r); }

  // ---- results

  std::vector<UOp> write(UOp done) {
    const UOp half = new_range(2, AxisType::kUpcast),
              eighth = new_range(columns_ / 8, AxisType::kUpcast),
              pair = new_range(2, AxisType::kLane);
    const auto of_row = [&](UOp first, UOp second) { return where(half < 1, first, second); };
    std::vector<std::pair<UOp, UOp>> results;
    for (size_t i = 0; i < states_.size(); i++) {
      const MergedReduction& r = t_.reductions[i];
      std::vector<UOp> own;
      for (const State& s : states_[i]) own.push_back(after(s.memory, done));
      UOp out;
      if (t_.products[i]) {
        out = arena_.make(Op::LANE, r.reduce.dtype(), {own[0], eighth * 4 + half * 2 + pair});
      } else if (is_base(i)) {
        out = of_row(own[0], own[1]);
      } else {
        std::array<UOp, 2> all = shared(r.reduce.arg_op(), {own[0], own[1]}, std::array{done});
        for (UOp& total : all) {  // by all threads, whoever writes
          const UOp memory = new_register(total.dtype());
          total = after(memory, after(memory, done).assign(total));
        }
        out = of_row(all[0], all[1]);
      }
      results.emplace_back(r.reduce, finished(r, out, results));
    }
    const std::array to = {std::pair(t_.rows, first_row_ + own_row(half)),
                           std::pair(t_.columns, eighth * 8 + x_ * 2 + pair)};
    std::vector<UOp> ends;
    for (UOp e : t_.ends) {
      std::vector<UOp> all{replace_ranges(stored(e.src(0), done, results), to)};
      all.insert(all.end(), around_.begin(), around_.end());
      all.insert(all.end(), {half, eighth, pair});
      ends.push_back(arena_.with_srcs(e, all));
    }
    return ends;
  }

  // A write of the results, where there are such rows and columns.
  UOp stored(UOp store, UOp done, std::span<const std::pair<UOp, UOp>> results) const {
    std::vector<UOp> srcs(store.srcs().begin(), store.srcs().end());
    std::vector<UOp> gates(srcs.begin() + 2, srcs.end());
    for (const auto& [range, places] :
         {std::pair(t_.rows, kTileRows), std::pair(t_.columns, columns_)}) {
      if (size_of(range) % places != 0) gates.push_back(range < size_of(range));
    }
    srcs.resize(2);
    if (gates.size() > 0) srcs.push_back(gates[0]);
    for (size_t i = 1; i < gates.size(); i++) srcs[2] = srcs[2] & gates[i];
    const UOp gate = srcs.size() == 3 ? srcs[2] : bool_const(arena_, true);
    srcs[1] = substitute(reads_after(srcs[1], done, gate), results);
    return arena_.with_srcs(store, srcs);
  }

  UOp finished(const MergedReduction& r, UOp result,
               std::span<const std::pair<UOp, UOp>> before) const {
    UOp out = result;
    if (r.is_nan_when_empty) {
      const UOp maximum =
          std::ranges::find(before, t_.reductions[r.on].reduce, &std::pair<UOp, UOp>::first)
              ->second;
      const double nan = std::numeric_limits<double>::quiet_NaN();
      out = where(is_lowest(maximum), constant(arena_, out.dtype(), nan), out);
    }
    for (const auto& [op, factor] : r.scales) {
      UOp f = substitute(factor, before);
      if (f.dtype() != out.dtype()) f = cast(f, out.dtype());
      out = arena_.make(op, out.dtype(), {out, f});
    }
    return out;
  }

  // What is read of memory for the results is read when registers are free, and where they count.
  UOp reads_after(UOp value, UOp done, UOp gate) const {
    std::vector<UOp> kept;
    for (const MergedReduction& r : t_.reductions) kept.push_back(r.reduce);
    const auto is_kept = [&](UOp n) { return has(kept, n); };
    return rebuild_part(value, is_kept, [&](UOp n, std::span<const UOp> srcs) {
      const bool is_read =
          n.is(Op::LOAD) && srcs[0].is(Op::INDEX) && srcs[0].src(0).is(Op::DEFINE_GLOBAL);
      if (!is_read) return arena_.with_srcs(n, srcs);
      std::vector<UOp> all(srcs.begin(), srcs.end());
      all[0] = index(after(srcs[0].src(0), done), srcs[0].src(1));
      return read_only_if_here(arena_.with_srcs(n, all), gate);
    });
  }

  Arena& arena_;
  MergedTiles t_;
  int64_t block_;
  TileCopies copies_;
  int64_t next_id_ = 0, places_ = 0, columns_ = 0;
  bool is_ahead_;
  int64_t stages_;
  int64_t first_elements_ = 0, block_elements_ = 0;  // of local memory
  std::vector<UOp> around_;
  UOp first_row_, warp_, y_, x_, thread_, blocks_, end_, local_, step_, tiles_;
  std::vector<Part> first_, second_, products_;
  std::vector<std::vector<State>> states_;  // by reduction
  std::vector<std::vector<UOp>> scores_;    // of this block, lane by lane
  std::vector<UOp> next_scores_;
  std::vector<UOp> ahead_, taken_;  // the next ones are begun, and become those of this block
  std::vector<Base> bases_;
};

// Of local memory, for blocks of so many places.
int64_t bytes_of(const MergedTiles& t, int64_t block) {
  int64_t first = 0, of_block = 0, shared = 0;
  for (const TileProduct& p : t.scores) {
    const int64_t depth = rounded_up(size_of(p.sum), kTileDepth);
    first += depth * kTileRows, of_block += depth * block;
  }
  for (size_t i = 0; i < t.products.size(); i++) {
    if (t.products[i]) {
      of_block += block * rounded_up(size_of(t.columns), kTileSide);
    } else {
      shared += kTileRows * kShared * t.reductions[i].reduce.dtype().item_bytes();
    }
  }
  constexpr int64_t signals = 1024;
  const int64_t stages = stages_of(rounded_up(size_of(t.columns), kTileSide));
  return (first + stages * of_block) * 2 + shared + signals;
}

}  // namespace

int64_t merged_block(const MergedTiles& tiles, int64_t local_bytes) {
  for (const int64_t block : {kTileSide}) {
    if (bytes_of(tiles, block) <= local_bytes) return block;
  }
  return 0;
}

std::string why_not_merged_tiles(UOp sink, int64_t axis, int64_t block, TileCopies copies) {
  if (block != 64 && block != 128) return "blocks have 64 or 128 places";
  const FoundMergedTiles found = find_merged_tiles(sink, axis);
  if (!found.why_not.empty() || copies == TileCopies::kVectors) return found.why_not;
  const MergedTiles& t = found.tiles;
  bool has_box = false;
  for (const TileProduct& p : t.scores) {
    has_box = has_box || tile_factor(p.a, t.rows, p.sum, copies).array ||
              tile_factor(p.b, t.along, p.sum, copies).array;
  }
  return has_box ? "" : "no factor is an array of up to five axes";
}

UOp merged_tiles(UOp sink, int64_t axis, int64_t block, TileCopies copies) {
  return Writer(sink, find_merged_tiles(sink, axis).tiles, block, copies).run();
}

}  // namespace weft
