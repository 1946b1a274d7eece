// The statements of a block, in the order of the reductions.
#include "schedule/rangeify/block_loops.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "schedule/rangeify/buffer_cost.h"
#include "schedule/rangeify/index_math.h"
#include "schedule/rangeify/loop_order.h"
#include "schedule/rangeify/merge_rules.h"
#include "schedule/rangeify/stored_values.h"
#include "schedule/rangeify/substitute_ranges.h"

namespace weft {
namespace {

constexpr int64_t kTileRows = 6;                    // of a product, in registers
constexpr int64_t kLeastRows = 36, kMostRows = 66;  // that run together
constexpr double kWorthStaging = cost::kFunction;   // operations that are not done twice

// The ranges of a reduction's result that are not around all of the group.
std::vector<UOp> free_ranges(UOp reduce, std::span<const UOp> rows) {
  std::vector<UOp> out;
  for (UOp r : ranges_of(reduce)) {
    if (!has_range(rows, r)) out.push_back(r);
  }
  return out;
}

// Operations of one place of the range; a reduction inside counts as many.
double weight_along(UOp root, UOp range) {
  double weight = 0;
  visit_computation(std::span(&root, 1), [&](UOp n) {
    if (!is_in_scope(range, n) || is_read(n)) return;
    weight += n.is(Op::REDUCE) ? kWorthStaging : weight_of(n.op());
  });
  return weight;
}

bool is_below(UOp n, UOp root) {
  const std::vector<UOp> order = toposort(root);
  return std::ranges::find(order, n) != order.end();
}

void add_once(std::vector<UOp>& list, UOp n) {
  if (!has_range(list, n)) list.push_back(n);
}

// The largest parts of a body that do not depend on its free ranges.
void add_parts(UOp body, UOp range, std::span<const UOp> free, std::vector<UOp>& out) {
  NodeMap seen(body.arena());
  std::vector<UOp> todo{body};
  while (!todo.empty()) {
    const UOp n = todo.back();
    todo.pop_back();
    if (seen.has(n) || n.dtype().is_index() || !is_in_scope(range, n)) continue;
    seen.put_number(n, 1);
    const bool is_part = std::ranges::none_of(free, [&](UOp r) { return is_in_scope(r, n); });
    if (!is_part) {
      if (!is_read(n)) todo.insert(todo.end(), n.srcs().begin(), n.srcs().end());
    } else if (weight_along(n, range) > 1) {
      add_once(out, n);
    }
  }
}

class Writer {
 public:
  explicit Writer(const BlockLoops& loops)
      : g_(loops), arena_(loops.range.arena()), staged_(staged_values(loops)) {
    for (const MergedReduction& r : g_.reductions) {
      State s{&r, {}, free_ranges(r.reduce, g_.rows), {}};
      s.memory = local(r.reduce.dtype(), places(s.free));
      states_.push_back(std::move(s));
      visit_computation({&r.body, 1}, [&](UOp n) {
        if (!n.is(Op::REDUCE) || !is_in_scope(g_.range, n)) return;
        for (UOp range : n.srcs().subspan(1)) add_once(nested_, range);
      });
    }
  }

  UOp value(UOp whole) {
    const int64_t size = g_.range.src(0).const_int(), count = size / g_.block;
    const UOp blocks = block_count(count);
    for (State& s : states_) s.now = after(s.memory, started(s));
    if (!blocks.is_const() || blocks.const_int() > 1) {
      write_loop(range(arena_, Dim(blocks), arena_.fresh_id()));
    } else if (blocks.const_int() == 1) {
      write_once(0, g_.block);
    }
    if (size > count * g_.block) write_once(count * g_.block, size - count * g_.block);
    std::vector<std::pair<UOp, UOp>> results;
    results.reserve(states_.size());
    for (const State& s : states_) results.emplace_back(s.reduction->reduce, result(s, results));
    return substitute(whole, results);
  }

 private:
  void write_loop(UOp blocks) {
    for (State& s : states_) s.now = opened(s.memory, s.now.src(1), blocks);
    std::vector<UOp> inside = g_.rows;
    inside.push_back(blocks);
    const UOp loop = end(write_block(blocks * g_.block, g_.block, inside), blocks);
    for (State& s : states_) s.now = after(s.memory, loop);
  }

  void write_once(int64_t first, int64_t count) {
    const UOp last = write_block(index_const(arena_, first), count, g_.rows);
    for (State& s : states_) s.now = after(s.memory, last);
  }

  struct State {
    const MergedReduction* reduction;
    UOp memory;
    std::vector<UOp> free;
    UOp now;  // the memory, after what has been done to it
  };

  // What a sum of exponentials is corrected by in a block.
  struct Base {
    size_t on;
    UOp base;
    Op function;
    UOp held, factor;  // memory of one element
  };

  // ---- memory

  UOp local(DType type, double size) {
    return define_local(arena_, type, int64_t(size), arena_.fresh_id());
  }
  UOp own_local(DType type, int64_t size, std::span<const UOp> inside) {
    const UOp memory = define_local(arena_, type, size, arena_.fresh_id());
    return inside.empty() ? memory : after(memory, inside);
  }
  UOp opened(UOp memory, UOp effect, UOp loop) const {
    const UOp waits[] = {effect, loop};
    return after(memory, waits);
  }
  UOp first_place(UOp memory) const { return index(memory, index_const(arena_, 0)); }
  UOp read(UOp memory) const { return load(first_place(memory)); }

  // A place of what has one element for each place of the ranges.
  UOp place(UOp memory, std::span<const UOp> ranges) const {
    UOp at = index_const(arena_, 0);
    for (UOp r : ranges) at = index_add(arena_, index_mul(arena_, at, r.src(0)), r);
    return index(memory, simplify_index(at));
  }
  UOp closed(UOp store, std::span<const UOp> ranges) const {
    return ranges.empty() ? store : end(store, ranges);
  }
  std::vector<UOp> copies(std::span<const UOp> ranges) {
    std::vector<UOp> out;
    for (UOp r : ranges) out.push_back(range(arena_, Dim(r.src(0)), arena_.fresh_id()));
    return out;
  }

  UOp started(const State& s) {
    const UOp memory = g_.rows.empty() ? s.memory : after(s.memory, g_.rows);
    const DType type = s.reduction->reduce.dtype();
    const UOp identity =
        constant_bits(arena_, type, *identity_bits(s.reduction->reduce.arg_op(), type));
    const std::vector<UOp> at = copies(s.free);
    return closed(place(memory, at).assign(identity), at);
  }

  // Blocks that count, the same for rows that may run together.
  UOp block_count(int64_t all) const {
    const UOp count = index_const(arena_, all);
    if (!g_.end) return count;
    std::vector<std::pair<UOp, UOp>> last;
    for (UOp r : ranges_of(g_.end)) {
      const int64_t rows = rows_together(bounds(r).hi + 1);
      last.emplace_back(r, r / rows * rows + (rows - 1));
    }
    const UOp end = substitute(g_.end, last);
    return simplify_index(
        min(max((end + (g_.block - 1)) / g_.block, index_const(arena_, 0)), count));
  }

  // ---- a block

  UOp write_block(UOp first, int64_t size, std::span<const UOp> inside) {
    first_ = first, size_ = size, inside_ = inside;
    own_nested_.clear();  // a loop is one of one block
    for (UOp r : nested_)
      own_nested_.push_back(range(arena_, Dim(r.src(0)), arena_.fresh_id(), r.axis()));
    held_.clear(), bases_.clear(), means_.clear(), effects_.clear(), late_.clear();
    for (State& s : states_) write(s);
    for (const auto& [memory, value] : late_) {
      effects_.push_back(first_place(after(memory, effects_)).assign(value));
    }
    return effects_.back();
  }

  bool is_base_of(size_t k, Correction correction) const {
    return std::ranges::any_of(g_.reductions, [&](const MergedReduction& r) {
      return r.correction == correction && r.on == k;
    });
  }

  void write(State& s) {
    const MergedReduction& r = *s.reduction;
    const auto k = size_t(&s - states_.data());
    for (UOp n : staged_) {
      if (is_below(n, r.body)) stage(n);
    }
    const std::vector<UOp> at = copies(s.free);
    const UOp block = block_result(s, at), so_far = place(s.now, at), old = load(so_far);
    if (r.correction == Correction::kNone && is_base_of(k, Correction::kExponentials)) {
      write_maximum(s, k, combined(r, old, block));
    } else if (r.correction == Correction::kNone && is_base_of(k, Correction::kSquaredDeviations)) {
      const UOp held = hold(block);
      means_.emplace_back(k, held);
      late_.emplace_back(s.now, old + read(held));
    } else if (r.correction == Correction::kSquaredDeviations) {
      update(s, at, old + (block + between_means(r)));
    } else if (r.correction == Correction::kExponentials) {
      update(s, at, old * read(base_of(r).factor) + block);
    } else {
      update(s, at, combined(r, old, block));
    }
  }

  UOp combined(const MergedReduction& r, UOp a, UOp b) const {
    return arena_.make(r.reduce.arg_op(), r.reduce.dtype(), {a, b});
  }

  // The last write of a block comes after all others, so that one END closes the loop.
  void update(const State& s, std::span<const UOp> at, UOp value) {
    const bool is_last = late_.empty() && &s == &states_.back() && !effects_.empty();
    const UOp memory = is_last ? after(s.now, effects_) : s.now;
    effects_.push_back(closed(place(memory, at).assign(value), at));
  }

  UOp block_result(const State& s, std::span<const UOp> at) {
    const MergedReduction& r = *s.reduction;
    const UOp j = range(arena_, size_, arena_.fresh_id(), AxisType::kReduce);
    UOp body = at_place(r.body, j, s.free, at);
    if (r.correction == Correction::kSquaredDeviations) {
      const std::pair<UOp, UOp> mean{r.base, block_mean(r)};
      body = substitute(body, {&mean, 1});
    }
    return reduce(r.reduce.arg_op(), body, {&j, 1});
  }

  // An expression at place j of the block, with what is staged read from memory.
  UOp at_place(UOp n, UOp j, std::span<const UOp> free = {}, std::span<const UOp> at = {},
               UOp itself = {}) {
    std::vector<UOp> from{g_.range}, to{index_add(arena_, first_, j)};
    from.insert(from.end(), nested_.begin(), nested_.end());
    to.insert(to.end(), own_nested_.begin(), own_nested_.end());
    const std::vector<UOp> own_from = from, own_to = to;
    from.insert(from.end(), free.begin(), free.end());
    to.insert(to.end(), at.begin(), at.end());
    std::vector<std::pair<UOp, UOp>> pairs;
    for (const auto& [value, memory] : held_) {
      if (value == itself) continue;
      pairs.emplace_back(substitute_ranges(value, own_from, own_to), load(index(memory, j)));
    }
    for (const Base& b : bases_) pairs.emplace_back(b.base, read(b.held));
    return substitute(substitute_ranges(n, from, to), pairs);
  }

  void stage(UOp n) {
    const auto is_same = [&](const auto& h) { return h.first == n; };
    if (std::ranges::any_of(held_, is_same)) return;
    const UOp memory = own_local(n.dtype(), size_, inside_);
    const UOp j = range(arena_, size_, arena_.fresh_id());
    const UOp filled = end(index(memory, j).assign(at_place(n, j)), j);
    held_.emplace_back(n, after(memory, filled));
  }

  // One value, in memory.
  UOp hold(UOp value) {
    const UOp memory = own_local(value.dtype(), 1, inside_);
    return after(memory, first_place(memory).assign(value));
  }

  // ---- exponentials

  UOp is_lowest(UOp x) const {
    const double lowest = -std::numeric_limits<double>::infinity();
    return equal(x, constant(arena_, x.dtype(), lowest));
  }

  // The base of what is lower than all is 0, and what has been summed up to there is 0.
  void write_maximum(const State& s, size_t k, UOp now) {
    const UOp held = hold(now), old = read(s.now);
    const UOp zero = constant(arena_, now.dtype(), 0.0);
    const auto in_terms_of = [&](UOp base, UOp maximum) {
      const std::pair<UOp, UOp> pair{s.reduction->reduce, maximum};
      return substitute(base, {&pair, 1});
    };
    std::vector<UOp> waits;
    for (const MergedReduction& r : g_.reductions) {
      if (r.correction != Correction::kExponentials || r.on != k || has_base(r)) continue;
      const Op function = exponential_of(r);
      const UOp base = hold(where(is_lowest(read(held)), zero, in_terms_of(r.base, read(held))));
      const UOp step = unary(function, in_terms_of(r.base, old) - read(base));
      const UOp factor = hold(where(is_lowest(old), zero, step));
      bases_.push_back({k, r.base, function, base, factor});
      effects_.push_back(factor.src(1));
    }
    late_.emplace_back(s.now, read(held));
  }

  bool has_base(const MergedReduction& r) const {
    return std::ranges::any_of(bases_, [&](const Base& b) {
      return b.on == r.on && b.base == r.base && b.function == exponential_of(r);
    });
  }
  const Base& base_of(const MergedReduction& r) const {
    return *std::ranges::find_if(bases_, [&](const Base& b) {
      return b.on == r.on && b.base == r.base && b.function == exponential_of(r);
    });
  }

  // ---- squared deviations

  UOp held_sum(const MergedReduction& r) const {
    return std::ranges::find(means_, r.on, &std::pair<size_t, UOp>::first)->second;
  }
  UOp block_mean(const MergedReduction& r) const {
    return read(held_sum(r)) * constant(arena_, r.reduce.dtype(), 1.0 / double(size_));
  }
  // (mean of the block - mean of what came before)^2 n m / (n + m), for n elements after m.
  UOp between_means(const MergedReduction& r) const {
    const DType type = r.reduce.dtype();
    const UOp n = constant(arena_, type, double(size_)), m = cast(first_, type);
    const UOp before = read(states_[r.on].now) / max(m, constant(arena_, type, 1.0));
    const UOp distance = block_mean(r) - before;
    const UOp is_first = first_ < 1;
    return where(is_first, constant(arena_, type, 0.0), distance * distance * (n * (m / (n + m))));
  }

  // ---- results

  UOp result(const State& s, std::span<const std::pair<UOp, UOp>> before) const {
    const MergedReduction& r = *s.reduction;
    UOp out = load(place(s.now, s.free));
    if (r.is_nan_when_empty) {
      const UOp nan = constant(arena_, out.dtype(), std::numeric_limits<double>::quiet_NaN());
      out = where(is_lowest(read(states_[r.on].now)), nan, out);
    }
    for (const auto& [op, factor] : r.scales) {
      UOp f = substitute(factor, before);
      if (f.dtype() != out.dtype()) f = cast(f, out.dtype());
      out = arena_.make(op, out.dtype(), {out, f});
    }
    return out;
  }

  const BlockLoops& g_;
  Arena& arena_;
  std::vector<UOp> staged_;
  std::vector<State> states_;
  std::vector<UOp> nested_;  // ranges of the reductions inside of the bodies

  std::vector<UOp> own_nested_;  // of this block
  UOp first_;                    // place of the block
  int64_t size_ = 0;
  std::span<const UOp> inside_;            // loops around it
  std::vector<std::pair<UOp, UOp>> held_;  // staged value, memory
  std::vector<Base> bases_;
  std::vector<std::pair<size_t, UOp>> means_;  // reduction, memory of the block's sum
  std::vector<UOp> effects_;
  std::vector<std::pair<UOp, UOp>> late_;  // what others read as it was: memory, new value
};

// In tenths of a full tile: a tile with fewer rows takes longer. The last block is done in full.
int64_t time_in_rows(int64_t places, int64_t rows) {
  const int64_t each = 10 * (rows / kTileRows) + (rows % kTileRows == 0 ? 0 : 12);
  return (places + rows - 1) / rows * each;
}

}  // namespace

int64_t rows_together(int64_t places) {
  int64_t best = std::min(kMostRows, std::max<int64_t>(places, 1));
  for (int64_t rows = best; rows >= kLeastRows; rows--) {
    if (time_in_rows(places, rows) < time_in_rows(places, best)) best = rows;
  }
  return best;
}

std::vector<UOp> staged_values(const BlockLoops& loops) {
  std::vector<UOp> out;
  for (const MergedReduction& r : loops.reductions) {
    const std::vector<UOp> free = free_ranges(r.reduce, loops.rows);
    if (!free.empty()) add_parts(r.body, loops.range, free, out);
  }
  for (const MergedReduction& r : loops.reductions) {
    const bool is_used_again =
        free_ranges(r.reduce, loops.rows).empty() &&
        weight_along(r.body, loops.range) >= kWorthStaging &&
        (std::ranges::any_of(loops.reductions,
                             [&](const MergedReduction& other) {
                               return other.body != r.body && is_below(r.body, other.body);
                             }) ||
         std::ranges::any_of(out, [&](UOp n) { return n != r.body && is_below(r.body, n); }));
    if (is_used_again) add_once(out, r.body);
  }
  std::ranges::sort(out, {}, &UOp::id);
  return out;
}

UOp with_block_loops(UOp value, const BlockLoops& loops) { return Writer(loops).value(value); }

}  // namespace weft
