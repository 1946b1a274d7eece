// Owners from users to sources, then the time of each value.
#include "schedule/roll/loop_statements.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/reads.h"
#include "ir/shape.h"
#include "schedule/roll/loop_events.h"
#include "schedule/roll/region.h"

namespace weft {
namespace {

constexpr uint32_t kShared = 1;        // owners: more than one statement
constexpr uint64_t kMostInlined = 24;  // operations of a statement
constexpr size_t kLeastGathered = 4;   // memories
constexpr uint64_t kMostMoved = 6;     // the same, of what is read at several places
constexpr uint64_t kMostRepeated = 2;  // operations on constants, computed by each of its users
constexpr int64_t kMostSlotBytes = int64_t(1) << 28;
constexpr int64_t kLargeOutput = 4096;  // bytes

int64_t numel_of(UOp n) {
  int64_t count = 1;
  for (const Dim d : shape_of(n)) count *= d.value();
  return count;
}

bool repeats(UOp n) {
  if (n.is(Op::EXPAND)) return true;
  if (!n.is(Op::VIEW)) return false;
  const size_t rank = (n.src_count() - 2) / 2;
  return std::ranges::any_of(n.srcs().subspan(1 + rank, rank), [](UOp stride) {
    return stride.is_const() && stride.const_int() == 0;
  });
}

bool may_meet(const Region& a, const Region& b) {
  const auto span_of = [](const Region& r) {
    int64_t low = r.offset(), high = r.offset();
    for (const Region::Axis& axis : r.axes()) {
      const int64_t reach = axis.stride * (axis.size - 1);
      (reach < 0 ? low : high) += reach;
    }
    return std::pair(low, high);
  };
  const auto [a_low, a_high] = span_of(a);
  const auto [b_low, b_high] = span_of(b);
  return a_low <= b_high && b_low <= a_high;
}

}  // namespace

LoopStatements::LoopStatements(std::span<const UOp> order, const LoopEvents& events,
                               OutputMemory outputs, LoopCuts cuts)
    : order_(order),
      arena_(order.back().arena()),
      events_(events),
      outputs_(outputs),
      cuts_(cuts),
      kept_of_(arena_),
      copy_of_(arena_),
      owners_(arena_),
      is_simple_(arena_),
      is_repeated_(arena_),
      is_cut_(arena_),
      seen_(arena_) {
  find_cuts();
  if (cuts_ == LoopCuts::kAlike) cut_alike();
  find_kept();
  if (!find_times()) return;
  order_statements();
  assign_slots();
}

bool LoopStatements::refuse(UOp node, std::string reason) {
  refusal_ = {node, std::move(reason)};
  return false;
}

// ---- which values are kept

// Long formulas are cut into parts; a short formula of constants alone is computed wherever it is
// used. `depths` counts a value with several users at each of them, down to what is written or
// reduced: a long formula is cut at all such values, so that each turn of a loop is cut alike.
void LoopStatements::find_cuts() {
  NodeMap users(arena_), sizes(arena_), depths(arena_), is_boundary(arena_), is_moved(arena_);
  for (UOp n : order_) {
    for (UOp s : n.srcs()) users.put_number(s, users.number(s) + 1);
    if (is_movement(n.op()) && !n.is(Op::RESHAPE)) is_moved.put_number(n.src(0), 1);
    if (!n.is(Op::STORE)) continue;
    UOp value = n.src(1);
    while (is_movement(value.op())) value = value.src(0);
    is_boundary.put_number(value, 1);
  }
  for (UOp n : order_) {
    const bool is_inner = is_elementwise(n.op()) || is_movement(n.op());
    bool is_simple = is_inner || n.is_const() || n.is(Op::IOTA);
    uint64_t repeated = is_elementwise(n.op()) ? 1 : 0;
    for (UOp s : n.srcs()) {
      is_simple = is_simple && is_simple_.has(s);
      repeated += is_simple ? is_simple_.number(s) - 1 : 0;
    }
    is_simple = is_simple && repeated <= kMostRepeated;
    if (is_simple) is_simple_.put_number(n, 1 + repeated);
    if (n.dtype().is_index() || n.dtype().is_void() || events_.has_memory(n)) continue;
    uint64_t size = is_movement(n.op()) ? 0 : 1;
    for (UOp s : n.srcs()) {
      if (!is_simple_.has(s))
        size += users.number(s) > 1 && !is_movement(s.op()) ? 1 : sizes.number(s);
    }
    uint64_t depth = is_elementwise(n.op()) ? 1 : 0;
    for (UOp s : n.srcs()) depth += is_simple_.has(s) ? 0 : depths.number(s);
    depth = std::min(depth, 2 * kMostInlined);
    const bool is_shared = users.number(n) > 1 && !is_boundary.has(n);
    const uint64_t most = is_moved.has(n) ? kMostMoved : kMostInlined;
    const bool is_cut =
        cuts_ == LoopCuts::kAll || size > kMostInlined || (is_shared && depth > most);
    if (is_elementwise(n.op()) && is_cut && !is_simple) {
      is_cut_.put_number(n, 1);
      size = 1;
    }
    if (size > 0) sizes.put_number(n, size);
    if (is_boundary.has(n) || n.is(Op::REDUCE_AXIS)) depth = 1;
    if (depth > 0) depths.put_number(n, depth);
  }
}

// The form of a value is what it is computed by, down to memory, constants and what several use.
void LoopStatements::cut_alike() {
  constexpr uint64_t k_leaf = 1, k_simple = 2, k_mask = (uint64_t(1) << 47) - 1;
  NodeMap users(arena_), forms(arena_), whole(arena_);
  for (UOp n : order_) {
    for (UOp s : n.srcs()) users.put_number(s, users.number(s) + 1);
  }
  std::unordered_set<uint64_t> stored;
  const auto find_forms = [&](bool cuts) {
    for (UOp n : order_) {
      if (n.dtype().is_void()) continue;
      uint64_t form = k_leaf;
      const bool is_leaf = events_.has_memory(n) || n.is(Op::REDUCE_AXIS) || is_cut_.has(n);
      if (is_simple_.has(n)) {
        form = k_simple;
      } else if (is_movement(n.op())) {
        form = forms.number(n.src(0));
      } else if (!is_leaf && n.src_count() > 0) {
        Hash128 hash = mix(mix(Hash128{}, uint64_t(n.op())), n.dtype().packed());
        for (UOp s : n.srcs()) hash = mix(hash, forms.number(s));
        form = (hash.low & k_mask) | 4;
        if (cuts && is_elementwise(n.op()) && stored.contains(form)) is_cut_.put_number(n, 1);
        if (users.number(n) > 1 || is_cut_.has(n)) form = k_leaf;
        whole.put_number(n, (hash.low & k_mask) | 4);
      }
      forms.put_number(n, form);
    }
  };
  find_forms(false);
  for (const LoopEvent& e : events_.events()) {
    UOp value = e.value;
    while (is_movement(value.op())) value = value.src(0);
    if (whole.has(value)) stored.insert(whole.number(value));
  }
  find_forms(true);
}

LoopKept& LoopStatements::keep(UOp n) {
  if (const uint64_t known = kept_of_.number(n)) return kept_[known - 1];
  kept_.push_back({.node = n});
  pending_.emplace_back();
  kept_of_.put_number(n, kept_.size());
  return kept_.back();
}

const LoopKept* LoopStatements::kept_value(UOp n) const {
  const uint64_t known = kept_of_.number(n);
  return known == 0 ? nullptr : &kept_[known - 1];
}

void LoopStatements::own(UOp n, uint32_t owner) {
  const uint64_t known = owners_.number(n);
  owners_.put_number(n, known == 0 || known == owner ? owner : kShared);
}

void LoopStatements::pass_on(UOp n, uint32_t owner) {
  if (is_movement(n.op())) {
    own(n.src(0), owner);
    if (is_repeated_.has(n) || repeats(n)) is_repeated_.put_number(n.src(0), 1);
    return;
  }
  for (size_t i = 0; i < n.src_count(); i++) {
    const UOp s = n.src(i);
    if (n.is(Op::INDEX) && i == 0) {
      const UOp base = base_of(s);
      if (!events_.has_memory(base)) keep(base);
    }
    own(s, owner);
    const bool is_inside = is_repeated_.has(n) && !n.is(Op::REDUCE_AXIS);
    const bool is_spread = is_elementwise(n.op()) && numel_of(s) < numel_of(n);
    if (is_inside || is_spread) is_repeated_.put_number(s, 1);
  }
}

void LoopStatements::find_kept() {
  uint32_t next = kShared + 1;
  for (size_t i = order_.size(); i-- > 0;) {
    const UOp n = order_[i];
    if (n.is(Op::SINK)) {
      for (UOp s : n.srcs()) {
        UOp base = s;
        while (base.is(Op::RESHAPE)) base = base.src(0);
        if (!events_.has_memory(base)) keep(s).is_output = true;
        own(s, next++);
      }
      continue;
    }
    if (n.is(Op::STORE)) {
      const uint32_t owner = next++;
      own(n.src(1), owner);
      if (numel_of(n.src(1)) < numel_of(n.src(0))) is_repeated_.put_number(n.src(1), 1);
      if (n.src(0).is(Op::INDEX)) {
        for (UOp s : n.src(0).srcs().subspan(1)) own(s, owner);
      }
      continue;
    }
    if (events_.is_made(n)) {
      own(n.src(0), next++);
      continue;
    }
    if (n.is_const() || n.is(Op::IOTA) || n.is(Op::AFTER) || events_.has_memory(n)) continue;
    if (!owners_.has(n)) continue;
    uint32_t owner = uint32_t(owners_.number(n));
    const bool computes = !is_movement(n.op());
    const bool is_shared = owner == kShared && computes && !is_simple_.has(n);
    const bool is_again = n.is(Op::REDUCE_AXIS) && is_repeated_.has(n);
    if (is_shared || is_again || is_cut_.has(n) || n.is(Op::CONTIGUOUS)) keep(n);
    if (kept_of_.has(n)) {
      owner = next++;
      is_repeated_.put_number(n, 0);
    }
    pass_on(n, owner);
  }
}

// ---- when they are computed

UOp LoopStatements::base_of(UOp n) const {
  while (is_movement(n.op()) && !kept_of_.has(n)) n = n.src(0);
  return n;
}

// The elements that movement ops from `chain` down to `base` leave of the whole of base.
std::optional<Region> LoopStatements::region_of(UOp chain, UOp base, const Region& whole) const {
  std::vector<UOp> ops;
  for (; chain != base; chain = chain.src(0)) ops.push_back(chain);
  std::optional<Region> region = whole;
  for (size_t i = ops.size(); region && i-- > 0;) {
    if (!region->apply(ops[i])) region.reset();
  }
  return region;
}

bool LoopStatements::find_times() {
  if (!note_outputs(order_.back())) return false;
  for (size_t i = order_.size() - 1; i-- > 0;) {
    const UOp n = order_[i];
    if (const uint64_t number = kept_of_.number(n)) {
      decide(uint32_t(number - 1));
    } else if (n.is(Op::STORE) || events_.is_made(n)) {
      note_event(events_.event_of(n));
    }
  }
  return true;
}

bool LoopStatements::note_outputs(UOp sink) {
  const uint32_t end = uint32_t(events_.events().size());
  for (UOp s : sink.srcs()) {
    if (const uint64_t number = kept_of_.number(s)) {
      pending_[number - 1].uses.push_back({end, {}});
      continue;
    }
    const UOp version = base_of(s);
    const std::optional<uint32_t> last = events_.last_event(events_.memory_of(version));
    if (last && events_.time_of(version) != *last + 1) {
      return refuse(version, "it is wanted as it is before other writes");
    }
  }
  return true;
}

void LoopStatements::note_event(uint32_t event) {
  const LoopEvent& e = events_.events()[event];
  note_stored_by(e.value, event);
  std::vector<Step> todo{{e.value, true}};
  if (!e.region) {
    for (UOp s : e.store.src(0).srcs().subspan(1)) todo.push_back({s, false});
  }
  visit(std::move(todo), event, event);
}

void LoopStatements::note_stored_by(UOp value, uint32_t event) {
  const LoopEvent& e = events_.events()[event];
  if (!e.region || (e.store && e.store.accumulates())) return;
  while (value.is(Op::RESHAPE) && !kept_of_.has(value)) value = value.src(0);
  const uint64_t number = kept_of_.number(value);
  if (number == 0 || kept_[number - 1].is_output) return;
  std::optional<uint32_t>& first = pending_[number - 1].stored_by;
  if (!first || event < *first) first = event;
}

void LoopStatements::decide(uint32_t number) {
  const UOp node = kept_[number].node;
  const Pending p = std::move(pending_[number]);
  LoopKept& k = kept_[number];
  if (p.stored_by && is_there(k, p, *p.stored_by)) k.defined_by = p.stored_by;
  k.time = k.defined_by ? *k.defined_by : events_.time_of(node);
  std::vector<Step> todo;
  push_sources({node, true}, todo);
  visit(std::move(todo), k.time, k.defined_by);
}

// Whether all uses of what this event stores find it in memory.
bool LoopStatements::is_there(const LoopKept& k, const Pending& p, uint32_t event) const {
  const LoopEvent& e = events_.events()[event];
  std::vector<int64_t> sizes;
  for (const Dim d : shape_of(k.node)) sizes.push_back(d.value());
  Region region = *e.region;
  if (events_.time_of(k.node) > event || !region.reshape(sizes)) return false;
  if (k.node.dtype() != e.value.dtype()) return false;
  const uint32_t lost = events_.first_write(e.memory, region, event + 1);
  return std::ranges::all_of(p.uses, [&](const Use& u) {
    if (u.event == event) return true;
    if (u.time <= event || u.time > lost) return false;
    return u.time < lost || (u.event && events_.events()[*u.event].region &&
                             events_.events()[*u.event].region->numel() == 1);
  });
}

void LoopStatements::push_sources(const Step& step, std::vector<Step>& todo) const {
  const UOp n = step.n;
  if (is_movement(n.op())) return todo.push_back({n.src(0), false});
  const bool is_aligned = step.is_aligned && (is_elementwise(n.op()) || n.is(Op::CONTIGUOUS));
  for (size_t i = 0; i < n.src_count(); i++) {
    const bool is_named = n.is(Op::INDEX) && i == 0;  // any element of it
    todo.push_back({is_named ? base_of(n.src(i)) : n.src(i), is_aligned});
  }
}

// Notes what a statement reads, down to its leaves.
void LoopStatements::visit(std::vector<Step> todo, uint32_t time, std::optional<uint32_t> event) {
  stamp_++;
  while (!todo.empty()) {
    const Step step = todo.back();
    const UOp n = step.n;
    todo.pop_back();
    if (n.is_const() || n.is(Op::IOTA) || n.dtype().is_index()) continue;
    const UOp base = base_of(n);
    if (events_.has_memory(base)) {
      visit_read(n, base, time, event, step.is_aligned);
    } else if (const uint64_t number = kept_of_.number(base)) {
      pending_[number - 1].uses.push_back({time, event});
    } else if (seen_.number(base) != stamp_) {
      seen_.put_number(base, stamp_);
      push_sources({base, step.is_aligned && base == n}, todo);
    }
  }
}

void LoopStatements::visit_read(UOp chain, UOp base, uint32_t time, std::optional<uint32_t> event,
                                bool aligned) {
  const Region whole = *Region::whole(base);
  UOp read = chain;
  std::optional<Region> region;
  while (!(region = region_of(read, base, whole))) read = read.src(0);
  const uint32_t memory = events_.memory_of(base);
  const uint32_t lost = events_.first_write(memory, *region, events_.time_of(base));
  if (lost < time) return copy_before(read, lost);
  if (!event || lost != time) return;
  // The event itself overwrites it: each element must be read before any other is written.
  const LoopEvent& e = events_.events()[*event];
  if (e.memory != memory) return;
  const int64_t count = e.region ? e.region->numel() : numel_of(e.store.src(0));
  if (count == 1) return;
  const bool is_same =
      e.region && aligned && read == chain && *region == *e.region && e.region->is_injective();
  if (!is_same && (!e.region || may_meet(*region, *e.region))) copy_before(read, time);
}

void LoopStatements::copy_before(UOp read, uint32_t time) {
  if (const uint64_t known = copy_of_.number(read)) {
    LoopKept& k = kept_[known - 1];
    k.time = std::min(k.time, time);
    return;
  }
  kept_.push_back({.node = read, .is_copy = true, .time = time});
  pending_.emplace_back();
  copy_of_.put_number(read, kept_.size());
}

// ---- statements in order, and places

void LoopStatements::order_statements() {
  NodeMap places(arena_);
  for (size_t i = 0; i < order_.size(); i++) places.put_number(order_[i], i + 1);
  for (uint32_t k = 0; k < kept_.size(); k++) {
    if (kept_[k].defined_by) continue;
    statements_.push_back(
        {LoopStatement::Kind::kKept, k, kept_[k].time, places.number(kept_[k].node)});
  }
  for (uint32_t e = 0; e < events_.events().size(); e++) {
    statements_.push_back({LoopStatement::Kind::kEvent, e, e, 0});
  }
  std::ranges::sort(statements_, {},
                    [](const LoopStatement& s) { return std::tuple(s.time, s.kind, s.place); });
}

// A large output has memory of its own: whoever holds it holds nothing else.
uint32_t LoopStatements::slots_for(const LoopKept& k) {
  const DType dtype = k.node.dtype();
  const bool is_large = k.is_output && (outputs_ == OutputMemory::kOwn ||
                                        numel_of(k.node) * dtype.item_bytes() > kLargeOutput);
  auto at = is_large ? slots_.end() : std::ranges::find_if(slots_, [&](const LoopSlots& t) {
    return t.dtype == dtype && t.is_output == k.is_output && !t.is_full && !t.is_of_memories;
  });
  if (at == slots_.end()) at = slots_.insert(at, {dtype, k.is_output, is_large});
  return uint32_t(at - slots_.begin());
}

// Memories that are made and no output are parts of one, if they are many: the turns of a loop that
// makes a tensor in each are then equal but for a place. The bytes that it takes.
int64_t LoopStatements::gather_memories() {
  const std::span<const UOp> memories = events_.memories();
  parts_.resize(memories.size());
  std::vector<bool> is_output(memories.size());
  for (UOp s : order_.back().srcs()) {
    if (const UOp base = base_of(s); events_.has_memory(base)) {
      is_output[events_.memory_of(base)] = true;
    }
  }
  const auto is_part = [&](uint32_t m, DType dtype) {
    return events_.is_made(memories[m]) && !is_output[m] && memories[m].dtype() == dtype;
  };
  int64_t bytes = 0;
  for (uint32_t m = 0; m < memories.size(); m++) {
    const DType dtype = memories[m].dtype();
    if (parts_[m] || !is_part(m, dtype)) continue;
    std::vector<uint32_t> all;
    for (uint32_t k = m; k < memories.size(); k++) {
      if (!parts_[k] && is_part(k, dtype)) all.push_back(k);
    }
    if (all.size() < kLeastGathered) {
      for (const uint32_t k : all) is_output[k] = true;  // each stays what it is
      continue;
    }
    LoopSlots slots{.dtype = dtype, .is_output = false, .is_of_memories = true};
    for (const uint32_t k : all) {
      parts_[k] = Part{uint32_t(slots_.size()), slots.size};
      slots.size += numel_of(memories[k]);
      slots.values++;
    }
    bytes += slots.size * dtype.item_bytes();
    slots_.push_back(slots);
  }
  return bytes;
}

bool LoopStatements::assign_slots() {
  int64_t bytes = gather_memories();
  for (const LoopStatement& s : statements_) {
    if (s.kind != LoopStatement::Kind::kKept) continue;
    LoopKept& k = kept_[s.number];
    if (!Region::whole(k.node)) return refuse(k.node, "it has too many axes");
    k.slots = slots_for(k);
    LoopSlots& slots = slots_[k.slots];
    k.first = slots.size;
    slots.size += numel_of(k.node);
    slots.values++;
    bytes += numel_of(k.node) * k.node.dtype().item_bytes();
  }
  if (bytes > kMostSlotBytes) return refuse(order_.back(), "too much would have to be kept");
  return true;
}

// ---- what statements read

UOp LoopStatements::root_of(const LoopStatement& s) const {
  if (s.kind == LoopStatement::Kind::kEvent) return events_.events()[s.number].value;
  return kept_[s.number].node;
}

LoopLeaf LoopStatements::place_of_memory(uint32_t memory, const Region& region) const {
  const DType dtype = events_.memories()[memory].dtype();
  const std::optional<Part>& part = parts_[memory];
  if (!part) return {LoopLeaf::Kind::kMemory, memory, dtype, region};
  return {LoopLeaf::Kind::kSlots, part->slots, dtype,
          region.moved_to(region.offset() + part->first)};
}

LoopLeaf LoopStatements::place_of_kept(const LoopKept& k) const {
  if (k.defined_by) {
    const LoopEvent& e = events_.events()[*k.defined_by];
    std::vector<int64_t> sizes;
    for (const Dim d : shape_of(k.node)) sizes.push_back(d.value());
    Region region = *e.region;
    region.reshape(sizes);
    return place_of_memory(e.memory, region);
  }
  return {LoopLeaf::Kind::kSlots, k.slots, k.node.dtype(),
          Region::whole(k.node)->moved_to(k.first)};
}

const LoopKept* LoopStatements::copy_for(UOp n, const LoopStatement& s) const {
  const uint64_t copy = copy_of_.number(n);
  if (copy == 0) return nullptr;
  const LoopKept& k = kept_[copy - 1];
  const bool is_event = s.kind == LoopStatement::Kind::kEvent;
  if (!is_event && s.number == copy - 1) return nullptr;
  return s.time > k.time || (is_event && s.time == k.time) ? &k : nullptr;
}

bool LoopStatements::computes(UOp n, const LoopStatement& s) const {
  const uint64_t number = kept_of_.number(n);
  if (number == 0) return false;
  if (s.kind == LoopStatement::Kind::kKept) return s.number == number - 1;
  return kept_[number - 1].defined_by == s.number;
}

std::optional<LoopLeaf> LoopStatements::leaf_of(UOp n, const LoopStatement& s) const {
  if (const LoopKept* copy = copy_for(n, s)) return place_of_kept(*copy);
  UOp base = n;
  const auto is_value = [&](UOp b) { return kept_of_.has(b) && !computes(b, s); };
  while (is_movement(base.op()) && !is_value(base)) base = base.src(0);
  std::optional<LoopLeaf> leaf;
  if (events_.has_memory(base)) {
    leaf = place_of_memory(events_.memory_of(base), *Region::whole(base));
  } else if (is_value(base)) {
    leaf = place_of_kept(kept_[kept_of_.number(base) - 1]);
  } else {
    return {};
  }
  const std::optional<Region> region = region_of(n, base, leaf->region);
  if (!region) return {};
  leaf->region = *region;
  return leaf;
}

}  // namespace weft
