// for i: { x = f(i); for j { y = g(x, y) } }  ->  for i: x[i] = f(i);  for j: { for i: y[i] = g(x[i], y[i]) }
#include "codegen/opt/block_rows.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/opt/loops.h"
#include "codegen/opt/split_range.h"
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

constexpr int64_t kFreeId = int64_t(1) << 40;  // of a range that is in no kernel

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
    if (n.is(Op::RANGE)) srcs[0] = simplify(srcs[0]);  // the same for all rows
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
    const UOp own = arena_.make(Op::RANGE, row_.dtype(), row_.srcs(),
                                Arg::range(next_id_++, row_.axis()));
    const std::pair<UOp, UOp> pair{row_, own};
    return end(replace_ranges(store, {&pair, 1}), own);
  }

  UOp row_;
  int64_t count_;
  Arena& arena_;
  int64_t& next_id_;
  std::unordered_map<UOp, UOp> memories_;
};

// The row directly inside of the loop that it is a part of.
UOp with_rows_outside(UOp sink, UOp row, UOp outer) {
  return rebuild(sink, [&](UOp n, std::span<const UOp> srcs) {
    const UOp same = n.arena().with_srcs(n, srcs);
    const auto listed = srcs.subspan(n.is(Op::END) ? 1 : srcs.size());
    if (std::ranges::find(listed, row) == listed.end()) return same;
    std::vector<UOp> all;
    const bool has_outer = outer && std::ranges::find(listed, outer) != listed.end();
    all.push_back(srcs[0]);
    if (!has_outer) all.push_back(row);
    for (UOp r : listed) {
      if (r != row) all.push_back(r);
      if (r == outer) all.push_back(row);
    }
    return n.arena().with_srcs(n, all);
  });
}

// Loops whose size depends on the row are others than those of other rows.
UOp with_own_sizes(UOp sink, UOp row, int64_t& next_id) {
  return rebuild(sink, [&](UOp n, std::span<const UOp> srcs) {
    const bool is_own = n.is(Op::RANGE) && n != row && is_in_scope(row, n);
    if (!is_own) return n.arena().with_srcs(n, srcs);
    return n.arena().make(Op::RANGE, n.dtype(), srcs, Arg::range(next_id++, n.axis()));
  });
}

// Loops that depend on a row: their sizes must be the same for all rows that run together.
bool is_same_for_rows(UOp size, UOp range, int64_t amount) {
  Arena& arena = size.arena();
  const UOp rows = index_const(arena, amount);
  const UOp inner = arena.make(Op::RANGE, range.dtype(), {rows}, Arg::range(kFreeId, range.axis()));
  const std::pair<UOp, UOp> pair{range, range * amount + inner};
  return !is_in_scope(inner, simplify(replace_ranges(size, {&pair, 1})));
}

}  // namespace

UOp block_rows(UOp sink, UOp range, int64_t amount, int64_t id) {
  const int64_t axis = range.range_id();
  sink = split_range(sink, range, {amount, range.axis(), id});
  int64_t next_id = id + 2;
  for (const int64_t part : {id, id + 1}) {  // and the rest
    const UOp row = range_by_id(sink, part);
    if (!row) continue;
    if (part != id) sink = with_own_sizes(sink, row, next_id);
    sink = with_rows_outside(sink, row, part == id ? range_by_id(sink, axis) : UOp());
    sink = Together(row, next_id).in(sink);
  }
  return sink;
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
