// Conditions flow from users to sources; then the LOADs that need them are made anew.
#include "codegen/gate_loads.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

bool is_true(UOp n) { return n.is_const() && n.const_int() != 0; }

// The index of a LOAD, and how many elements there are.
std::pair<UOp, UOp> index_and_size(UOp load) {
  UOp pointer = load.src(0);
  while (!pointer.is(Op::INDEX)) pointer = pointer.src(0);
  return {pointer.src(1), place_of(pointer).base.src(0)};
}

bool may_be_outside(UOp load) {
  const auto [at, size] = index_and_size(load);
  return bounds(at).lo < 0 || bounds(at).hi >= bounds(size).lo;
}

bool fits_scope(UOp condition, UOp n) {
  return std::ranges::all_of(ranges_of(condition), [&](UOp r) { return is_in_scope(r, n); });
}

class Gates {
 public:
  explicit Gates(UOp sink)
      : sink_(sink),
        arena_(sink.arena()),
        gates_(sink.arena()),
        is_cut_(sink.arena()),
        reads_memory_(sink.arena()),
        waits_(sink.arena()) {}

  UOp run() {
    const std::vector<UOp> order = toposort(sink_);
    if (std::ranges::none_of(order, needs_gate)) return sink_;
    for (UOp n : order) {
      const bool reads = n.is(Op::LOAD) || n.is(Op::AFTER) ||
                         std::ranges::any_of(n.srcs(), [&](UOp s) { return reads_memory_.has(s); });
      if (reads) reads_memory_.put_number(n, 1);
      const bool waits =
          n.is(Op::AFTER) || std::ranges::any_of(n.srcs(), [&](UOp s) { return waits_.has(s); });
      if (waits) waits_.put_number(n, 1);
    }
    gates_.put(sink_, bool_const(arena_, true));
    for (UOp n : order | std::views::reverse) pass_on(n);
    return rebuild(sink_, [&](UOp n, std::span<const UOp> srcs) { return gated(n, srcs); });
  }

 private:
  // Conditions on loops alone: what a condition reads would have to be gated, too.
  void add_condition(UOp& gate, UOp condition, UOp when, UOp source) {
    if (reads_memory_.has(condition)) {
      is_cut_.put_number(source, 1);
    } else {
      gate = both(gate, when);
    }
  }

  static bool needs_gate(UOp n) {
    return n.is(Op::LOAD) && n.src_count() == 1 && may_be_outside(n);
  }

  void pass_on(UOp n) {
    const bool always = is_effect(n.op()) || n.is(Op::AFTER);
    const UOp own = always ? bool_const(arena_, true) : gates_.get(n);
    for (size_t i = 0; i < n.src_count(); i++) {
      UOp gate = own;
      if (n.is(Op::WHERE) && i > 0) {
        add_condition(gate, n.src(0), i == 1 ? n.src(0) : ~n.src(0), n.src(i));
      }
      if (n.is(Op::STORE) && i < 2 && n.src_count() == 3) {
        add_condition(gate, n.src(2), n.src(2), n.src(i));
      }
      if (!always && is_cut_.has(n)) is_cut_.put_number(n.src(i), 1);
      use(n.src(i), gate);
    }
  }

  // A value that is computed in fewer loops than its user knows less: it takes of the condition
  // what its own loops decide, and is marked.
  void use(UOp n, UOp gate) {
    if (!fits_scope(gate, n)) {
      gate = part_in_scope(gate, n);
      is_cut_.put_number(n, 1);
    }
    const UOp so_far = gates_.get(n);
    if (!so_far) return gates_.put(n, gate);
    if (is_true(so_far) || so_far == gate) return;
    gates_.put(n, is_true(gate) ? gate : so_far | gate);
  }

  UOp part_in_scope(UOp gate, UOp n) const {
    UOp part = bool_const(arena_, true);
    std::vector<UOp> todo{gate};
    while (!todo.empty()) {
      const UOp at = todo.back();
      todo.pop_back();
      if (fits_scope(at, n)) {
        part = both(part, at);
      } else if (at.is(Op::AND)) {
        todo.insert(todo.end(), {at.src(1), at.src(0)});
      }
    }
    return part;
  }

  UOp is_in_bounds(UOp load) const {
    const auto [at, size] = index_and_size(load);
    return (index_const(arena_, -1) < at) & (at < size);
  }

  static UOp both(UOp a, UOp b) { return is_true(a) || a == b ? b : a & b; }

  UOp gated(UOp n, std::span<const UOp> srcs) {
    if (n.is(Op::WHERE) && srcs[1].is(Op::LOAD) && srcs[1].src_count() == 3 &&
        srcs[1].src(1) == srcs[0] && srcs[2].is_const()) {
      return load(srcs[1].src(0), srcs[0], srcs[2]);
    }
    const UOp made = arena_.with_srcs(n, srcs);
    if (!needs_gate(n)) return made;
    UOp gate = gates_.get(n);
    if (is_cut_.has(n)) gate = both(gate, is_in_bounds(made));
    // Effects that the index waits for are simplified with the kernel, or there would be two of
    // them.
    if (!waits_.has(index_and_size(n).first)) gate = simplify(gate);
    if (is_true(gate)) return made;
    return load(srcs[0], gate, arena_.make(Op::CONST, n.dtype(), {}, Arg::bits(0)));
  }

  UOp sink_;
  Arena& arena_;
  NodeMap gates_;   // under which condition a node is used
  NodeMap is_cut_;  // nodes that may be used where the condition does not hold
  NodeMap reads_memory_;
  NodeMap waits_;  // nodes that stand AFTER something
};

}  // namespace

UOp gate_loads(UOp sink) { return Gates(sink).run(); }

}  // namespace weft
