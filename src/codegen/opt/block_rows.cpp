// for i: { x = f(i); for j { y = g(x, y) } }  ->  for i: x[i] = f(i);  for j: { for i: y[i] =
// g(x[i], y[i]) }
#include "codegen/opt/block_rows.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/opt/loops.h"
#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

bool is_local(UOp pointer) {
  return pointer.dtype().is_pointer() && place_of(pointer).base.is(Op::DEFINE_LOCAL);
}

// AFTER(local memory, RANGEs) alone: memory that each iteration of them has for itself.
bool opens_memory(UOp n) {
  return n.is(Op::AFTER) && n.src(0).is(Op::DEFINE_LOCAL) &&
         std::ranges::all_of(n.srcs().subspan(1), [](UOp s) { return s.is(Op::RANGE); });
}

bool is_local_store(UOp n) { return n.is(Op::STORE) && is_local(n.src(0)); }

// One loop, whose iterations run together.
class Together {
 public:
  Together(UOp row, int64_t& next_id)
      : row_(row), count_(row.src(0).const_int()), arena_(row.arena()), next_id_(next_id) {}

  UOp in(UOp sink) {
    return rebuild_part(
        sink, [&](UOp n) { return !is_touched(n); },
        [&](UOp n, std::vector<UOp>& srcs) { return made(n, srcs); });
  }

 private:
  // What closes the row has it below.
  bool is_touched(UOp n) {
    if (n.is(Op::SINK) || is_in_scope(row_, n)) return true;
    return (n.is(Op::END) || n.is(Op::AFTER)) &&
           std::ranges::any_of(n.srcs(), [&](UOp s) { return is_touched(s); });
  }

  UOp made(UOp n, std::vector<UOp>& srcs) {
    if (n == row_) return n;
    if (opens_memory(n)) return opened(n, srcs);
    if (n.is(Op::INDEX) && is_local(n.src(0)) && is_in_scope(row_, n.src(0))) {
      srcs[1] = simplify(row_ * place_of(n.src(0)).base.src(0) + srcs[1], nullptr, Loads::kStay);
      return arena_.with_srcs(n, srcs);
    }
    if (n.is(Op::AFTER) && n.src(0).is(Op::DEFINE_LOCAL)) srcs[0] = copy_of(n.src(0));
    if (n.is(Op::AFTER)) std::erase(srcs, row_);
    if (is_local_store(n)) return in_rows(arena_.with_srcs(n, srcs));
    if (n.is(Op::END) && is_local_store(n.src(0)) && closes_own_loops(n)) {
      const UOp inside = srcs[0];  // END(STORE, row)
      std::vector<UOp> all(inside.srcs().begin(), inside.srcs().end());
      all.insert(all.end(), srcs.begin() + 1, srcs.end());
      return arena_.with_srcs(n, all);
    }
    return arena_.with_srcs(n, srcs);
  }

  // Loops that the memory does not wait for.
  static bool closes_own_loops(UOp end) {
    const UOp memory = end.src(0).src(0);
    UOp pointer = memory;
    while (!pointer.is(Op::INDEX)) pointer = pointer.src(0);
    return std::ranges::none_of(end.srcs().subspan(1),
                                [&](UOp r) { return is_in_scope(r, pointer.src(0)); });
  }

  UOp copy_of(UOp memory) {
    UOp& copy = memories_[memory];
    if (!copy) {
      copy = define_local(arena_, memory.dtype().pointee(), memory.src(0).const_int() * count_,
                          arena_.fresh_id());
    }
    return copy;
  }

  UOp opened(UOp n, std::vector<UOp>& srcs) {
    srcs[0] = copy_of(n.src(0));
    std::erase(srcs, row_);
    return srcs.size() == 1 ? srcs[0] : arena_.with_srcs(n, srcs);
  }

  UOp in_rows(UOp store) {
    const UOp own =
        arena_.make(Op::RANGE, row_.dtype(), row_.srcs(), Arg::range(next_id_++, row_.axis()));
    const std::pair<UOp, UOp> pair{row_, own};
    return end(replace_ranges(store, {&pair, 1}), own);
  }

  UOp row_;
  int64_t count_;
  Arena& arena_;
  int64_t& next_id_;
  std::unordered_map<UOp, UOp> memories_;
};

// The rows of a loop, in blocks: past its end the last one is done again, and nothing is written.
class Rows {
 public:
  Rows(UOp range, int64_t amount, int64_t id)
      : range_(range), arena_(range.arena()), size_(range.src(0).const_int()) {
    const int64_t count = (size_ + amount - 1) / amount;
    row_ = loop(std::min(amount, size_), id);
    outer_ = count > 1 ? loop(count, range.range_id()) : index_const(arena_, 0);
    first_ = count > 1 ? outer_ * amount : outer_;
    place_ = count > 1 ? first_ + row_ : row_;
    has_rest_ = count * amount != size_ && count > 1;
  }

  UOp row() const { return row_; }

  UOp in(UOp sink) const {
    const UOp sized = with_sizes(sink);
    const UOp place = has_rest_ ? min(place_, index_const(arena_, size_ - 1)) : place_;
    const std::pair<UOp, UOp> pair{range_, place};
    std::vector<UOp> effects;
    for (UOp n : sized.srcs()) {
      const auto listed = n.srcs().subspan(n.is(Op::END) ? 1 : n.src_count());
      if (std::ranges::find(listed, range_) == listed.end()) {
        effects.push_back(n);
        continue;
      }
      std::vector<UOp> srcs{replace_ranges(has_rest_ ? gated(n.src(0)) : n.src(0), {&pair, 1})};
      for (UOp r : listed) {
        if (r != range_) {
          srcs.push_back(r);
          continue;
        }
        if (outer_.is(Op::RANGE)) srcs.push_back(outer_);
        srcs.push_back(row_);
      }
      effects.push_back(arena_.with_srcs(n, srcs));
    }
    return arena_.with_srcs(sized, effects);
  }

 private:
  UOp loop(int64_t size, int64_t id) const {
    return arena_.make(Op::RANGE, range_.dtype(), {index_const(arena_, size)},
                       Arg::range(id, range_.axis()));
  }

  // Sizes are the same for all rows of a block: that of the first.
  UOp with_sizes(UOp sink) const {
    const std::pair<UOp, UOp> pair{range_, first_};
    return rebuild(sink, [&](UOp n, std::vector<UOp>& srcs) {
      const bool has_size = n.is(Op::RANGE) && n != range_ && is_in_scope(range_, n);
      if (has_size) srcs[0] = simplify(replace_ranges(srcs[0], {&pair, 1}));
      return arena_.with_srcs(n, srcs);
    });
  }

  UOp gated(UOp body) const {
    const UOp gate = place_ < size_;
    return rebuild_part(
        body, [&](UOp n) { return !is_in_scope(range_, n); },
        [&](UOp n, std::vector<UOp>& srcs) {
          const UOp same = arena_.with_srcs(n, srcs);
          if (!n.is(Op::STORE) || is_local_store(n)) return same;
          return same.src(0).assign(same.src(1), n.src_count() == 3 ? same.src(2) & gate : gate);
        });
  }

  UOp range_;
  Arena& arena_;
  int64_t size_;
  UOp row_, outer_, first_, place_;
  bool has_rest_ = false;
};

// Loops that depend on a row: their sizes must be the same for all rows that run together.
bool is_same_for_rows(UOp size, UOp range, int64_t amount) {
  Arena& arena = size.arena();
  const UOp rows = index_const(arena, amount);
  const UOp inner =
      arena.make(Op::RANGE, range.dtype(), {rows}, Arg::range(free_range_id(size), range.axis()));
  const std::pair<UOp, UOp> pair{range, range * amount + inner};
  return !is_in_scope(inner, simplify(replace_ranges(size, {&pair, 1})));
}

}  // namespace

UOp block_rows(UOp sink, UOp range, int64_t amount, int64_t id) {
  const Rows rows(range, amount, id);
  int64_t next_id = id + 1;
  return Together(rows.row(), next_id).in(rows.in(sink));
}

std::string why_not_block(UOp sink, UOp range, int64_t amount) {
  if (!range.src(0).is_const()) return "the size of the loop is not constant";
  bool opens = false;
  for (UOp n : toposort(sink)) {
    if (!opens_memory(n) || !is_in_scope(range, n)) continue;
    opens = true;
    if (!n.src(0).src(0).is_const()) return "the size of local memory is not constant";
  }
  if (!opens) return "it opens no local memory";
  for (UOp n : sink.srcs()) {  // as a free loop's are
    const auto listed = n.srcs().subspan(n.is(Op::END) ? 1 : n.src_count());
    if (std::ranges::find(listed, range) == listed.end()) return "not all of the kernel is in it";
  }
  for (UOp n : toposort(sink)) {
    const bool has_size = n.is(Op::RANGE) && n != range && is_in_scope(range, n);
    if (has_size && !is_same_for_rows(n.src(0), range, amount))
      return "the size of another loop differs between its places";
    const bool is_other_effect = n.is(Op::DEFINE_REG) || n.is(Op::BARRIER) || n.is(Op::FETCH);
    if (is_other_effect && is_in_scope(range, n)) return "there is more than local memory in it";
  }
  return amount < 1 ? "the amount is not positive" : "";
}

bool carries_local_memory(UOp sink) {
  const std::vector<UOp> order = toposort(sink);
  return std::ranges::any_of(order, [](UOp n) {
    if (!n.is(Op::AFTER) || !is_local(n)) return false;
    const auto waits = n.srcs().subspan(1);
    return std::ranges::any_of(waits, [](UOp s) { return s.is(Op::RANGE); }) &&
           std::ranges::any_of(waits, [](UOp s) { return is_effect(s.op()); });
  });
}

}  // namespace weft
