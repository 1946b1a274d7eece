// What each stage asks beyond the rules of the ops: first of its nodes, then of the whole graph.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/print.h"
#include "ir/scope.h"
#include "ir/shape.h"
#include "ir/spec.h"
#include "ir/spec_rules.h"

namespace weft::spec {
namespace {

// ---------------------------------------------------------------------------------------------
// tensor

Found check_has_no_lanes(UOp n) {
  if (!n.dtype().is_vector()) return {};
  return bad_dtype("the dtype is {}; vectors are for kernels", n.dtype().name());
}

Found check_index_is_scalar(UOp n) {
  if (!n.dtype().is_index() || shape_of(n).empty()) return {};
  return bad_shape("a value of dtype index has shape {}; only scalars have this dtype",
                   text_of(shape_of(n)));
}

Found check_index_has_width(UOp n) {
  if (n.src(0).is(Op::BUFFER)) return {};
  for (UOp i : n.srcs().subspan(1)) {
    if (!i.dtype().is_index()) continue;
    return bad_dtype(
        "the index {} has dtype index; of a tensor that is computed it is int32 or int64",
        brief(i));
  }
  return {};
}

// AFTER(old, STORE(view of old, value)...) is the next version of a storage.
Found check_next_version(UOp n) {
  const UOp old = n.src(0);
  if (is_view(old.op())) {
    return bad_structure(
        "source 0 is {}, a view; a write makes the next version of a whole storage",
        with_article(old.op()));
  }
  for (size_t i = 1; i < n.src_count(); i++) {
    const UOp effect = n.src(i);
    if (!effect.is(Op::STORE)) {
      return bad_structure("source {} is {}; in a tensor graph it must be a STORE", i,
                           with_article(effect.op()));
    }
    const UOp target = effect.src(0);
    const UOp written = place_of(target.is(Op::INDEX) ? target.src(0) : target).version;
    if (written != old) {
      return bad_structure("source {} writes to a view of {}, not of source 0, {}", i,
                           brief(written), brief(old));
    }
  }
  return {};
}

// -----------------------------------------------------------------------------------------
// rangeified

Found check_range_is_index(UOp n) {
  if (n.dtype() == dtypes::index) return {};
  return bad_dtype("the dtype is {}; before a kernel is lowered it is index", n.dtype().name());
}

// Memory without axes has one element, which is read by an INDEX, too.
bool is_whole_memory(UOp n) {
  while (n.is(Op::AFTER) || n.is(Op::CONTIGUOUS) || n.is(Op::COPY)) n = n.src(0);
  return n.is(Op::BUFFER) || n.is(Op::BUFFERIZE);
}

Found check_reads_elements(UOp n) {
  const size_t first = n.is(Op::INDEX) ? 1 : 0;
  for (size_t i = first; i < n.src_count(); i++) {
    if (n.src(i).dtype().is_pointer() && !n.dtype().is_pointer()) {
      return bad_dtype("source {} is a pointer; its value is read by a LOAD", i);
    }
    const Shape shape = shape_of(n.src(i));
    if (!shape.empty()) {
      return bad_shape("source {} has shape {}; its elements are read by an INDEX", i,
                       text_of(shape));
    }
    if (is_whole_memory(n.src(i))) {
      return bad_shape("source {} is memory; its elements are read by an INDEX", i);
    }
  }
  return {};
}

constexpr OpSet kInMemory = {Op::BUFFER, Op::BUFFERIZE, Op::CONTIGUOUS, Op::COPY};

Found check_indexes_memory(UOp n) {
  const UOp base = place_of(n.src(0)).base;
  if (base.dtype().is_pointer() || kInMemory.has(base.op())) return {};
  return bad_structure(
      "source 0 is {}, which is not in memory",
      n.src(0) == base ? with_article(base.op()) : with_article(base.op()) + " AFTER effects");
}

Found check_stores_to_memory(UOp n) {
  const UOp target = n.src(0);
  const bool names_element =
      target.dtype().is_pointer() || target.is(Op::INDEX) || is_register(target);
  for (size_t i = 1; i < n.src_count() && names_element; i++) {
    if (!is_whole_memory(n.src(i))) continue;
    return bad_shape("source {} is memory; its elements are read by an INDEX", i);
  }
  if (names_element || place_of(target).base.is(Op::BUFFER)) return {};
  return bad_structure("the target is {}; allowed are a BUFFER, an INDEX and a register",
                       with_article(target.op()));
}

// What a kernel computes for all of its loops, or writes, is there after them.
Found check_closes_loops(UOp n) {
  const auto is_open = [&](UOp s) {
    return bad_structure("{} is open in {}; memory is written in loops that are closed",
                         brief(ranges_of(s).front()), brief(s));
  };
  if (n.is(Op::BUFFERIZE)) {
    const bool stays = n.space() == AddrSpace::kGlobal && !ranges_of(n).empty();
    return stays ? is_open(n) : Found();
  }
  if (is_register(n) || n.dtype().space == AddrSpace::kLocal) return {};
  for (UOp effect : n.srcs().subspan(1)) {
    if (!effect.is(Op::RANGE) && !ranges_of(effect).empty()) return is_open(effect);
  }
  return {};
}

// AFTER(memory, writes to it in their loops..., or KERNELs).
Found check_writes_to_memory(UOp n) {
  if (is_register(n) || n.dtype().space == AddrSpace::kLocal) return {};
  if (n.src_count() == 1) return bad_structure("it names no effect that it comes after");
  for (UOp effect : n.srcs().subspan(1)) {
    if (effect.is(Op::KERNEL)) continue;
    const UOp store = effect.is(Op::END) ? effect.src(0) : effect;
    if (!store.is(Op::STORE) || !store.dtype().is_void()) {
      return bad_structure(
          "{} is no write to memory; allowed are a STORE, an END of one and a KERNEL",
          brief(effect));
    }
    const UOp target = store.src(0), memory = target.is(Op::INDEX) ? target.src(0) : target;
    if (memory == n.src(0)) continue;
    return bad_structure("{} writes to {}, not to source 0, {}", brief(effect), brief(memory),
                         brief(n.src(0)));
  }
  return {};
}

// A register AFTER loops alone.
bool is_unwritten(UOp n) {
  while (n.is(Op::AFTER)) {
    const auto effects = n.srcs().subspan(1);
    if (std::ranges::any_of(effects, [](UOp s) { return !s.is(Op::RANGE); })) return false;
    n = n.src(0);
  }
  return n.is(Op::DEFINE_REG);
}

Found check_reads_written(UOp n) {
  for (size_t i = n.is(Op::STORE) ? 1 : 0; i < n.src_count(); i++) {
    if (!is_unwritten(n.src(i))) continue;
    return bad_structure("source {} reads {} before any STORE", i, brief(n.src(i)));
  }
  return {};
}

Found check_reduces_values(UOp n) {
  if (!n.dtype().is_index()) return {};
  return bad_dtype("the dtype is index; what a kernel reduces has a width");
}

Found check_is_pointer(UOp n) {
  if (n.dtype().is_pointer()) return {};
  return bad_dtype("the dtype is {}, one element; such arguments are for kernels",
                   n.dtype().name());
}

// What a graph makes is memory that stays.
Found check_sink_of_memory(UOp n) {
  for (size_t i = 0; i < n.src_count(); i++) {
    const UOp s = n.src(i);
    UOp base = s;
    bool is_copy = false;
    while (base.is(Op::AFTER) || base.is(Op::CONTIGUOUS) || base.is(Op::COPY)) {
      is_copy |= !base.is(Op::AFTER);
      base = base.src(0);
    }
    const bool stays = base.is(Op::BUFFER) || base.is(Op::DEFINE_GLOBAL) ||
                       (base.is(Op::BUFFERIZE) && (is_copy || base.space() == AddrSpace::kGlobal));
    if (stays || !ranges_of(s).empty()) continue;  // open loops are what is said of the root
    return bad_structure("source {} is {}, which is no memory that stays", i, brief(s));
  }
  return {};
}

// --------------------------------------------------------------------------------- kernel and
// program

Found check_indexes_pointer(UOp n) {
  if (n.src(0).dtype().is_pointer()) return {};
  return bad_dtype("source 0 has dtype {}; in a kernel an INDEX is of a pointer",
                   n.src(0).dtype().name());
}

Found check_stores_by_pointer(UOp n) {
  if (n.src(0).dtype().is_pointer() || is_register(n.src(0))) return {};
  return bad_structure(
      "the target is {}; in a kernel it must be an INDEX of a pointer or a register",
      with_article(n.src(0).op()));
}

// The places of a lane range are done at once: none goes on from what another leaves.
Found check_not_carried_through_lanes(UOp n) {
  if (!is_register(n)) return {};
  for (UOp r : n.srcs().subspan(1)) {
    if (!r.is(Op::RANGE) || r.axis() != AxisType::kLane) continue;
    for (UOp effect : n.srcs().subspan(1)) {
      if (effect.is(Op::RANGE) || is_in_scope(r, effect)) continue;
      return bad_structure("{} is carried into {}, whose places are lanes", brief(place_of(n).base),
                           brief(r));
    }
  }
  return {};
}

Found check_sink_of_effects(UOp n) {
  for (size_t i = 0; i < n.src_count(); i++) {
    if (n.src(i).is(Op::AFTER)) continue;
    if (Found f = check_effect(n, i)) return f;
  }
  return {};
}

Found check_has_width(UOp n) {
  if (!n.dtype().is_index()) return {};
  return bad_dtype("the dtype is {}; in a program integers have a width", n.dtype().name());
}

// A value has an element for each place of one lane range at most.
Found check_lanes(UOp n) {
  UOp lane;
  for (UOp r : ranges_of(n)) {
    if (r.axis() != AxisType::kLane) continue;
    if (lane)
      return bad_structure("it stands in two ranges of lanes, {} and {}", brief(lane), brief(r));
    lane = r;
  }
  return {};
}

// A register is opened, by AFTER(register, RANGE), in each loop in which it is written, but for its
// first write: that starts it anew.
Found check_writes_opened_register(UOp n) {
  if (!is_register(n.src(0)) || !n.src(0).is(Op::AFTER)) return {};
  for (UOp r : ranges_of(n.src(1))) {
    if (is_in_scope(r, n.src(0))) continue;
    return bad_structure(
        "{} is written in {}, in which it is not opened: the target waits for no {}",
        brief(place_of(n.src(0)).base), brief(r), brief(r));
  }
  return {};
}

constexpr unsigned kTensor = stage_bit(Stage::kTensor);
constexpr unsigned kRangeified = stage_bit(Stage::kRangeified);
constexpr unsigned kKernel = stage_bit(Stage::kKernel);
constexpr unsigned kProgram = stage_bit(Stage::kProgram);

constexpr OpSet reads_elements() {
  OpSet set = kElementwise;
  set.add(Op::REDUCE);
  set.add(Op::BUFFERIZE);
  set.add(Op::INDEX);
  return set;
}

constexpr OpSet reads_registers() {
  OpSet set = kElementwise;
  for (const Op op : {Op::REDUCE, Op::VECTORIZE, Op::GEP, Op::STORE}) set.add(op);
  return set;
}

constexpr StageRule kStageRules[] = {
    {kTensor | kRangeified, OpSet::all(), check_has_no_lanes},
    {kTensor, OpSet::all(), check_index_is_scalar},
    {kTensor, {Op::INDEX}, check_index_has_width},
    {kTensor, {Op::AFTER}, check_next_version},
    {kTensor, {Op::STORE}, check_scatter},
    {kRangeified, {Op::RANGE}, check_range_is_index},
    {kRangeified, reads_elements(), check_reads_elements},
    {kRangeified, {Op::INDEX}, check_indexes_memory},
    {kRangeified, {Op::STORE}, check_stores_to_memory},
    {kRangeified, {Op::BUFFERIZE, Op::AFTER}, check_closes_loops},
    {kRangeified, {Op::AFTER}, check_writes_to_memory},
    {kRangeified, {Op::DEFINE_GLOBAL}, check_is_pointer},
    {kRangeified | kKernel, {Op::REDUCE}, check_reduces_values},
    {kRangeified | kKernel, reads_registers(), check_reads_written},
    {kRangeified, {Op::SINK}, check_sink_of_memory},
    {kKernel | kProgram, {Op::INDEX}, check_indexes_pointer},
    {kKernel | kProgram, {Op::STORE}, check_stores_by_pointer},
    {kKernel, {Op::SINK}, check_sink_of_effects},
    {kKernel, {Op::STORE}, check_writes_opened_register},
    {kKernel, {Op::AFTER}, check_not_carried_through_lanes},
    {kRangeified | kKernel, OpSet::all(), check_lanes},
    {kProgram, OpSet::all(), check_has_width},
};

// --------------------------------------------------------------------------------------- whole
// graphs

std::optional<Violation> check_root(UOp root, Op needed) {
  if (root.is(needed)) return {};
  return violation_at(root, {ViolationKind::kStructure,
                             fmt::format("it is the root; that must be a {}", name_of(needed))});
}
std::optional<Violation> check_kernel_root(UOp root, std::span<const UOp>) {
  return check_root(root, Op::SINK);
}
std::optional<Violation> check_program_root(UOp root, std::span<const UOp>) {
  return check_root(root, Op::LINEAR);
}

// What a definition is known by: its id, or its name.
uint64_t identity_of(UOp n) {
  return n.is(Op::RANGE) ? uint64_t(n.range_id()) : n.arg_word();  // names are interned
}

std::optional<Violation> check_identities(UOp, std::span<const UOp> order) {
  constexpr OpSet definitions = {Op::BUFFER,        Op::RANGE,        Op::VARIABLE,  Op::SPECIAL,
                                 Op::DEFINE_GLOBAL, Op::DEFINE_LOCAL, Op::DEFINE_REG};
  std::array<std::unordered_map<uint64_t, UOp>, kOpCount> seen;
  for (UOp n : order) {
    if (!definitions.has(n.op())) continue;
    const auto [at, is_new] = seen[size_t(n.op())].emplace(identity_of(n), n);
    if (is_new) continue;
    return violation_at(n,
                        *bad_structure("{} is also another: {}", brief(n), describe(at->second)));
  }
  return {};
}

std::optional<Violation> check_loops_are_closed(UOp root, std::span<const UOp>) {
  if (!root.is(Op::SINK) || ranges_of(root).empty()) return {};
  return violation_at(
      root, *bad_structure("{} is still open at the root", brief(ranges_of(root).front())));
}

constexpr GraphRule kGraphRules[] = {
    {kKernel, check_kernel_root},
    {kProgram, check_program_root},
    {kTensor | kRangeified | kKernel | kProgram, check_identities},
    {kRangeified | kKernel, check_loops_are_closed},
    {kProgram, check_list},
};

}  // namespace

std::span<const StageRule> stage_rules() { return kStageRules; }
std::span<const GraphRule> graph_rules() { return kGraphRules; }

}  // namespace weft::spec
