// Range assignment, from users to sources.
#include "schedule/rangeify/indexing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/huge_vector.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/reads.h"
#include "ir/scope.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "schedule/rangeify/index_math.h"
#include "schedule/rangeify/movement.h"
#include "schedule/schedule.h"

namespace weft {

Assigned& IndexingContext::at(UOp n) {
  if (!slots_.has(n)) {
    assigned_.emplace_back();
    slots_.put_number(n, assigned_.size());
  }
  return assigned_[slots_.number(n) - 1];
}

TupleId IndexingContext::keep(IndexList indices) {
  const auto [at, is_new] = tuple_ids_.try_emplace(std::move(indices), TupleId(tuples_.size()));
  if (is_new) tuples_.push_back(&at->first);
  return at->second;
}

UOp IndexingContext::range_of_axis(size_t axis, Dim size) {
  if (size.is(1)) return index_const(arena_, 0);
  const UOp places = simplify_index(size.as_uop(arena_));  // as it will be in simplified indices
  UOp& found = axes_[{axis, places}];
  if (!found) found = range(arena_, places, arena_.fresh_id(), AxisType::kLoop);
  return found;
}

IndexList IndexingContext::ranges_of_shape(Shape shape) {
  IndexList out;
  out.reserve(shape.size());
  for (size_t i = 0; i < shape.size(); i++) out.push_back(range_of_axis(i, shape[i]));
  return out;
}

UOp IndexingContext::new_reduce_range(Dim size) {
  const UOp places = simplify_index(size.as_uop(arena_));
  return range(arena_, places, arena_.fresh_id(), AxisType::kReduce);
}

namespace {

// A value that will be stored, or a write: what is computed together so far.
struct Root {
  size_t statements = 0;
  size_t buffers = 0;
  size_t reductions = 0;
  // Of a value that is surely stored, its own ranges: a SCAN may run in these loops, the one over
  // its axis innermost.
  std::optional<TupleId> own;
  std::optional<int64_t> scanned;  // the axis of the SCANs that do
};

// What users have asked of a node so far.
struct Demand {
  TupleId at;
  uint32_t root;
  bool differs = false;  // in indices, in roots, or through an EXPAND or a PAD: it may be stored
};

class Assignment {
 public:
  explicit Assignment(IndexingContext& context)
      : c_(context), arena_(context.arena()), demands_(arena_), readers_(arena_) {}

  void run(UOp sink) {
    if (c_.order.empty()) c_.order = toposort(sink);
    c_.expect(c_.order.size());
    demand_list_.reserve(c_.order.size());
    for (size_t i = c_.order.size(); i-- > 0;) visit(c_.order[i]);
  }

 private:
  void visit(UOp n) {
    if (n.is(Op::STORE)) return n.dtype().is_void() ? visit_store(n) : visit_register(n);
    if (n.is(Op::AFTER)) return is_register(n) ? visit_register(n) : void();
    if (n.is(Op::CONTIGUOUS) || n.is(Op::COPY))
      return visit_stored(n, Storing::kMust, StoringCause::kAsked);
    const bool computes =
        is_elementwise(n.op()) || n.is(Op::REDUCE_AXIS) || n.is(Op::IOTA) || is_gather(n);
    if (n.is(Op::SCAN) && demands_.has(n)) return visit_scan(n);
    if (!computes || n.dtype().is_index() || !demands_.has(n)) return;
    visit_value(n);
  }

  void visit_store(UOp n) {
    const uint32_t root = new_root();
    const TupleId at = c_.keep(c_.ranges_of_shape(shape_of(n.src(0))));
    begin(n).at = at;
    if (n.src(0).is(Op::INDEX)) return visit_scatter(n, at, root);
    Access to = follow_views(n.src(0), c_.tuple(at));
    while (to.base.is(Op::BITCAST)) {
      Access below = follow_views(to.base.src(0), to.at);
      to.base = below.base, to.at = std::move(below.at), to.flat = below.flat;
    }
    c_.add_edge({to.base, {}, to.flat, c_.keep(std::move(to.at))});
    for (size_t i = 1; i < n.src_count(); i++) ask(n, i, at, root);
  }

  // Edges: the memory, the value, the indices.
  void visit_scatter(UOp n, TupleId at, uint32_t root) {
    UOp memory = base_of(n.src(0).src(0));
    while (memory.is(Op::BITCAST)) memory = base_of(memory.src(0));
    c_.add_edge({memory, {}, {}, 0});
    ask(n, 1, at, root);
    for (size_t i = 1; i < n.src(0).src_count(); i++) ask(n.src(0), i, at, root);
  }

  // A register holds one element of whoever reads it: its writes are asked for the same indices.
  void visit_register(UOp n) {
    if (!demands_.has(n)) return;
    const Demand d = demand(n);
    begin(n).at = d.at;
    for (size_t i = 0; i < n.src_count(); i++) {
      const UOp s = n.src(i).is(Op::END) ? n.src(i).src(0) : n.src(i);
      const bool is_value = !s.is(Op::RANGE) && !s.is(Op::DEFINE_REG);
      if (is_value) {
        ask_for(s, d.at, d.root);
      } else {
        c_.add_edge({s, {}, {}, d.at});
      }
    }
  }

  void visit_value(UOp n) {
    const Demand& d = demand(n);
    const bool is_inside_loop = !ranges_of(n).empty();
    const Root& root = roots_[d.root];
    const bool is_full =
        root.statements >= c_.limits().statements || root.buffers + 4 > c_.limits().buffers;
    const bool has_reductions =
        n.is(Op::REDUCE_AXIS) && root.reductions >= c_.limits().accumulators;
    if ((is_full || has_reductions) && !is_inside_loop) {
      const auto cause = is_full ? StoringCause::kKernelIsFull : StoringCause::kReductions;
      return visit_stored(n, Storing::kMust, cause);
    }
    // Phase 3 does not put a matrix product into the loop of another reduction.
    const bool is_nested = n.is(Op::REDUCE_AXIS) && is_in_reduction(d.at) && !is_inside_loop;
    if (d.differs || is_nested) {
      const auto cause = d.differs ? StoringCause::kOtherIndices : StoringCause::kNestedReduction;
      return visit_stored(n, Storing::kMay, cause);
    }
    assign(n, d.at, d.root, Storing::kNever, StoringCause::kOneUse);
  }

  // Its elements exist one after the other: they are stored, or used as they come by the one value
  // that is stored in the same loops.
  void visit_scan(UOp n) {
    const Demand& d = demand(n);
    Root& root = roots_[d.root];
    const int64_t axis = n.ints()[0];
    const bool is_full =
        root.statements >= c_.limits().statements || root.buffers + 4 > c_.limits().buffers;
    const bool runs_there = root.own == d.at && !d.differs && root.scanned.value_or(axis) == axis;
    if (is_full || !runs_there) return visit_stored(n, Storing::kMust, StoringCause::kScanned);
    root.scanned = axis;
    assign(n, d.at, d.root, Storing::kNever, StoringCause::kOneUse);
  }

  bool is_in_reduction(TupleId at) const {
    return std::ranges::any_of(c_.tuple(at), [](UOp i) {
      return std::ranges::any_of(ranges_of(i), [](UOp r) { return r.axis() == AxisType::kReduce; });
    });
  }

  void visit_stored(UOp n, Storing storing, StoringCause cause) {
    const TupleId at = c_.keep(c_.ranges_of_shape(shape_of(n)));
    const uint32_t root = new_root();
    if (storing == Storing::kMust) roots_[root].own = at;
    if (n.is(Op::SCAN)) roots_[root].scanned = n.ints()[0];
    assign(n, at, root, storing, cause);
  }

  void assign(UOp n, TupleId at, uint32_t root, Storing storing, StoringCause cause) {
    Assigned& a = begin(n);
    a.at = at;
    a.storing = storing;
    a.cause = cause;
    roots_[root].statements++;
    roots_[root].reductions += n.is(Op::REDUCE_AXIS) ? 1 : 0;
    if (n.is(Op::REDUCE_AXIS)) {
      const Shape shape = shape_of(n.src(0));
      IndexList below = c_.tuple(at), reduced;
      for (const int64_t axis : n.ints()) {
        if (shape[size_t(axis)].is(1)) continue;
        below[size_t(axis)] = c_.new_reduce_range(shape[size_t(axis)]);
        reduced.push_back(below[size_t(axis)]);
      }
      a.reduced = c_.keep(std::move(reduced));
      at = c_.keep(std::move(below));
    }
    if (n.is(Op::IOTA)) return;
    if (n.is(Op::INDEX)) ask_for_any(base_of(n.src(0)), root);
    for (size_t i = n.is(Op::INDEX) ? 1 : 0; i < n.src_count(); i++) ask(n, i, at, root);
  }

  static UOp base_of(UOp n) {
    while (is_movement(n.op()) || n.is(Op::DETACH)) n = n.src(0);
    return n;
  }

  // Some element, that nobody knows yet: the value has indices of its own, and may be stored.
  void ask_for_any(UOp base, uint32_t root) {
    if (base.is(Op::BUFFER) || base.is(Op::AFTER)) count_buffer(base, root);
    if (!demands_.has(base)) {
      demand_list_.push_back({0, root, true});
      demands_.put_number(base, demand_list_.size());
    }
    demand(base).differs = true;
    c_.add_edge({base, {}, {}, 0});
  }

  Assigned& begin(UOp n) {
    Assigned& a = c_.at(n);
    a.first_edge = c_.edge_count();
    return a;
  }

  // User n asks its source i for the element that stands at n's indices.
  void ask(UOp n, size_t i, TupleId at, uint32_t root) {
    const bool has_axes = !shape_of(n.src(i)).empty() || is_register(place_of(n.src(i)).version);
    ask_for(n.src(i), has_axes ? at : TupleId(0), root);
  }

  void ask_for(UOp source, TupleId at, uint32_t root) {
    Edge edge{source, {}, {}, at};
    bool repeats = false;
    if (is_movement(source.op()) || source.is(Op::DETACH)) {
      Access access = follow_views(source, c_.tuple(at));
      edge = {access.base, access.gate, access.flat, c_.keep(std::move(access.at))};
      repeats = access.repeats || access.gate;  // what is padded is asked for in the padding, too
    }
    const UOp base = edge.base;
    if (base.is(Op::BUFFER) || base.is(Op::AFTER)) count_buffer(base, root);
    if (!demands_.has(base)) {
      demand_list_.push_back({edge.at, root, repeats});
      demands_.put_number(base, demand_list_.size());
    } else {
      Demand& d = demand(base);
      d.differs = d.differs || d.root != root || d.at != edge.at || repeats;
    }
    c_.add_edge(edge);
  }

  void count_buffer(UOp buffer, uint32_t root) {
    if (readers_.number(buffer) == root + 1) return;
    readers_.put_number(buffer, root + 1);
    roots_[root].buffers++;
  }

  Demand& demand(UOp n) { return demand_list_[demands_.number(n) - 1]; }
  uint32_t new_root() {
    roots_.emplace_back();
    return uint32_t(roots_.size() - 1);
  }

  IndexingContext& c_;
  Arena& arena_;
  NodeMap demands_, readers_;
  HugeVector<Demand> demand_list_;
  std::vector<Root> roots_;
};

}  // namespace

void run_rangeify(UOp sink, IndexingContext& context) { Assignment(context).run(sink); }

}  // namespace weft
