// BUFFERIZE -> DEFINE_GLOBAL or DEFINE_LOCAL, STORE, END.
#include "schedule/rangeify/bufferize_to_store.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "schedule/rangeify/index_math.h"
#include "schedule/rangeify/loop_order.h"
#include "schedule/rangeify/stored_values.h"

namespace weft {
namespace {

class Storer {
 public:
  explicit Storer(Arena& arena) : arena_(arena) {}

  UOp run(UOp sink) {
    return rebuild(sink,
                   [&](UOp n, std::vector<UOp>& srcs) { return followed(n, rebuilt(n, srcs)); });
  }

 private:
  UOp rebuilt(UOp n, std::vector<UOp>& srcs) {
    const bool has_size = info(n.op()).group == OpGroup::Define && !srcs.empty();
    if (has_size && srcs[0].dtype().is_index()) {
      srcs[0] = simplify_index(srcs[0]);  // as it will be in simplified indices
    }
    if (n.is(Op::BUFFERIZE)) return stored(n, srcs);
    if ((n.is(Op::COPY) || n.is(Op::CONTIGUOUS)) && is_memory(srcs[0])) return copied(n, srcs[0]);
    if (n.is(Op::INDEX)) return element(n, srcs);
    if (n.is(Op::STORE) && !shape_of(n.src(0)).empty()) return stored_whole(n, srcs);
    if (n.is(Op::STORE) && n.src(0).is(Op::INDEX) && srcs[0].is(Op::LOAD)) {
      srcs[0] = srcs[0].src(0);  // a target is the place, not what it holds
    }
    return n.is(Op::AFTER) ? arena_.with_srcs(n, srcs, srcs[0].dtype()) : arena_.with_srcs(n, srcs);
  }

  UOp stored(UOp n, std::span<const UOp> srcs) {
    const UOp value = srcs[0].is(Op::CONTIGUOUS) ? srcs[0].src(0) : srcs[0];
    const Shape shape = shape_of(n);
    UOp size = index_const(arena_, 1);
    for (const Dim d : shape) size = index_mul(arena_, size, d.as_uop(arena_));
    const bool is_local = n.space() == AddrSpace::kLocal;
    UOp memory = is_local ? define_local(arena_, value.dtype(), size, arena_.fresh_id())
                          : define_global(arena_, value.dtype(), size, arena_.fresh_id());
    if (size.is_const() && size.const_int() == 0) return memory;  // nothing to do
    // Local memory in loops: each of their iterations has it for itself.
    const std::span<const UOp> loops = ranges_of(n);
    if (is_local && !loops.empty()) memory = after(memory, loops);
    const UOp place = index(memory, simplify_index(flat_index(arena_, shape, srcs.subspan(1))));
    UOp effect = place.assign(value);
    IndexList ranges = ordered_loops(n, srcs);
    put_carried_last(value, ranges);
    if (!ranges.empty()) effect = end(effect, ranges);
    if (is_local) effect = barrier({&effect, 1});
    return after(memory, effect);
  }

  // What a BUFFERIZE stores can be computed in any order.
  static std::vector<UOp> ordered_loops(UOp n, std::span<const UOp> srcs) {
    const std::vector<UOp> loops = loops_of(n.srcs().subspan(1)), now = loops_of(srcs.subspan(1));
    if (loops.size() < 2) return now;
    const std::vector<RangeSet> around = loops_around_reductions(n.src(0), loops);
    std::vector<UOp> out;
    for (UOp r : order_loops(loops, around)) {
      out.push_back(now[size_t(std::ranges::find(loops, r) - loops.begin())]);
    }
    return out;
  }

  static bool is_memory(UOp n) {
    const Place place = place_of(n);
    return !place.is_indexed && (place.base.is(Op::BUFFER) || n.dtype().is_pointer());
  }

  // Memory of its own, on the device that a COPY names, filled from other memory as it lies.
  UOp copied(UOp n, UOp from) {
    UOp size = index_const(arena_, 1);
    for (const Dim d : shape_of(n)) size = index_mul(arena_, size, d.as_uop(arena_));
    const UOp memory = n.is(Op::COPY)
                           ? buffer(arena_, n.dtype(), size, n.src(1).name(), arena_.fresh_id())
                           : define_global(arena_, n.dtype(), size, arena_.fresh_id());
    if (size.is_const() && size.const_int() == 0) return memory;
    const UOp r = range(arena_, size, arena_.fresh_id());
    UOp value = index(from, r);
    if (from.dtype().is_pointer()) value = load(value);
    if (n.is(Op::COPY)) value = arena_.make(Op::COPY, n.dtype(), {value, n.src(1)});
    const UOp store = arena_.make(Op::STORE, dtypes::void_, {index(memory, r), value});
    return after(memory, end(store, r));
  }

  // A write of all of a BUFFER, element by element.
  UOp stored_whole(UOp n, std::vector<UOp>& srcs) {
    const UOp r = range(arena_, Dim(shape_of(n.src(0))[0]), arena_.fresh_id());
    srcs[0] = index(srcs[0], r);
    if (!shape_of(n.src(1)).empty()) {
      srcs[1] = index(srcs[1], r);
      if (srcs[1].dtype().is_pointer()) srcs[1] = load(srcs[1]);
    }
    return end(arena_.with_srcs(n, srcs), r);
  }

  // Memory that has more than one axis so far has one now.
  UOp element(UOp n, std::span<const UOp> srcs) {
    const UOp memory = srcs[0];
    if (n.dtype().is_pointer()) return arena_.with_srcs(n, srcs);  // local memory's, as it is
    const Shape shape = shape_of(n.src(0));
    const bool is_pointer = memory.dtype().is_pointer();
    if (!is_pointer && shape.size() == 1) return arena_.with_srcs(n, srcs);  // a BUFFER's
    IndexList at;
    for (UOp i : srcs.subspan(1)) at.push_back(i.dtype().is_index() ? i : cast(i, dtypes::index));
    const UOp offset = simplify_index(flat_index(arena_, shape, at));
    const UOp place = index(memory, offset);
    return is_pointer ? load(place) : place;
  }

  Arena& arena_;
};

}  // namespace

UOp bufferize_to_store(UOp sink) { return Storer(sink.arena()).run(sink); }

}  // namespace weft
