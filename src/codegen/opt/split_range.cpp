// Each closer of the range is made anew, with the range replaced in its body.
#include "codegen/opt/split_range.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scalar.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

bool closes(UOp n, UOp range) {
  if (!n.is(Op::END) && !n.is(Op::REDUCE)) return false;
  const auto listed = n.srcs().subspan(1);
  return std::ranges::find(listed, range) != listed.end();
}

// The graph with make(closer) for everything that closes the range.
template <class Make>
UOp with_closers(UOp sink, UOp range, Make&& make) {
  return rebuild(sink, [&](UOp n, std::span<const UOp> srcs) {
    const UOp made = flattened(n, srcs);
    return closes(n, range) ? make(made) : made;
  });
}

// The closer with `to` for the range in its body and in the sizes of its other loops, and other
// loops: those in `instead` where the range stood, and `inside` at the end.
UOp with_loops(UOp closer, UOp range, UOp to, std::span<const UOp> instead,
               std::span<const UOp> inside, Registers registers = Registers::kSame) {
  const std::pair<UOp, UOp> replacement{range, to};
  std::vector<UOp> srcs{replace_ranges(closer.src(0), {&replacement, 1}, registers)};
  for (UOp r : closer.srcs().subspan(1)) {
    if (r == range) {
      srcs.insert(srcs.end(), instead.begin(), instead.end());
    } else {
      srcs.push_back(replace_ranges(r, {&replacement, 1}));
    }
  }
  srcs.insert(srcs.end(), inside.begin(), inside.end());
  if (srcs.size() == 1 && closer.is(Op::END)) return srcs[0];
  return closer.arena().with_srcs(closer, srcs);
}

UOp range_of_size(Arena& arena, UOp size, int64_t id, AxisType axis) {
  return arena.make(Op::RANGE, dtypes::index, {size}, Arg::range(id, axis));
}

// A read that the gate of a padded range turns into zero, as the range is in its gate; or a product
// of two of them.
bool is_zero_off(UOp n, UOp padded) {
  std::vector<UOp> factors{n};
  if (n.is(Op::MUL)) factors.assign(n.srcs().begin(), n.srcs().end());
  return std::ranges::all_of(factors, [&](UOp f) {
    return f.is(Op::LOAD) && f.src_count() == 3 && is_in_scope(padded, f.src(1)) &&
           f.src(2).is_const() && f.src(2).bits() == 0;
  });
}

bool is_constant(UOp n, int64_t value) { return n.is_const() && n.const_int() == value; }

}  // namespace

UOp split_range(UOp sink, UOp range, const Split& split) {
  Arena& arena = sink.arena();
  const UOp amount = index_const(arena, split.amount), size = range.src(0);
  const UOp whole = simplify(size / amount), rest = simplify(size % amount);
  const UOp inner = range_of_size(arena, amount, split.inner_id, split.inner);
  const UOp tail = range_of_size(arena, rest, split.inner_id + 1, range.axis());
  const bool is_once = is_constant(whole, 1);
  const UOp outer =
      is_once ? index_const(arena, 0) : range_of_size(arena, whole, range.range_id(), range.axis());
  std::vector<UOp> instead;
  if (!is_once) instead.push_back(outer);
  // A loop with a register of its own must not change places with the loop that carries it, nor one
  // that decides the size of another with that.
  const std::vector<UOp> order = toposort(sink);
  const bool is_ordered = std::ranges::any_of(order, [&](UOp n) {
    return n.is(Op::DEFINE_REG) || (n.is(Op::RANGE) && n != range && is_in_scope(range, n));
  });
  if (is_ordered) instead.push_back(inner);
  const std::span<const UOp> inside(&inner, is_ordered ? 0 : 1);
  const UOp in_whole = is_once ? inner : outer * amount + inner;
  const UOp in_rest = simplify(whole * amount) + tail;
  return with_closers(sink, range, [&](UOp closer) {
    const UOp main = with_loops(closer, range, in_whole, instead, inside);
    if (is_constant(rest, 0)) return main;
    const UOp last = with_loops(closer, range, in_rest, {&tail, 1}, {}, Registers::kOwn);
    if (closer.is(Op::END)) return arena.make(Op::SINK, dtypes::void_, {main, last});
    return arena.make(closer.arg_op(), closer.dtype(), {main, last});
  });
}

UOp make_thread_range(UOp sink, UOp range, int64_t amount, int64_t inner_id) {
  Arena& arena = sink.arena();
  const UOp size = range.src(0);
  UOp thread = range_of_size(arena, size, range.range_id(), AxisType::kThread), inside, to = thread;
  if (amount > 0) {
    const UOp places = index_const(arena, amount);
    thread =
        range_of_size(arena, simplify((size + (amount - 1)) / places), inner_id, AxisType::kThread);
    const UOp begin = thread * places;
    const bool is_even = is_constant(simplify(size % places), 0);
    inside = range_of_size(arena, is_even ? places : min(places, size - begin), range.range_id(),
                           range.axis());
    to = begin + inside;
  }
  std::vector<UOp> instead;
  if (inside) instead.push_back(inside);
  return with_closers(sink, range, [&](UOp closer) {
    const UOp made = with_loops(closer, range, to, instead, {});
    std::vector<UOp> srcs{made.is(Op::END) ? made.src(0) : made, thread};
    if (made.is(Op::END)) srcs.insert(srcs.end(), made.srcs().begin() + 1, made.srcs().end());
    return arena.make(Op::END, dtypes::void_, srcs);
  });
}

UOp make_serial_range(UOp sink, UOp range) {
  const std::pair<UOp, UOp> pair{
      range, range_of_size(sink.arena(), range.src(0), range.range_id(), AxisType::kLoop)};
  return substitute(sink, {&pair, 1});
}

UOp pad_range(UOp sink, UOp range, int64_t amount) {
  Arena& arena = sink.arena();
  const UOp size = range.src(0);
  const UOp longer = simplify((size + (amount - 1)) / index_const(arena, amount) * amount);
  const UOp padded = range_of_size(arena, longer, range.range_id(), range.axis());
  const UOp gate = padded < size;
  const auto gated = [&](UOp n, std::span<const UOp> srcs) {
    const UOp made = arena.with_srcs(n, srcs);
    if (!n.is(Op::LOAD) && !n.is(Op::STORE)) return made;
    if (is_register(n.src(0))) return made;
    if (n.is(Op::LOAD)) {
      const UOp zero = arena.make(Op::CONST, n.dtype(), {}, Arg::bits(0));
      return n.src_count() == 3 ? load(made.src(0), made.src(1) & gate, made.src(2))
                                : load(made.src(0), gate, zero);
    }
    return made.src(0).assign(made.src(1), n.src_count() == 3 ? made.src(2) & gate : gate);
  };
  return with_closers(sink, range, [&](UOp closer) {
    const UOp made = with_loops(closer, range, padded, {&padded, 1}, {});
    std::vector<UOp> srcs(made.srcs().begin(), made.srcs().end());
    srcs[0] = rebuild_part(srcs[0], [&](UOp n) { return !is_in_scope(padded, n); }, gated);
    const bool is_sum = closer.is(Op::REDUCE) && closer.arg_op() == Op::ADD;
    if (closer.is(Op::REDUCE) && !(is_sum && is_zero_off(srcs[0], padded))) {
      const UOp neutral = arena.make(Op::CONST, made.dtype(), {},
                                     Arg::bits(*identity_bits(made.arg_op(), made.dtype())));
      srcs[0] = where(gate, srcs[0], neutral);
    }
    return arena.with_srcs(made, srcs);
  });
}

}  // namespace weft
