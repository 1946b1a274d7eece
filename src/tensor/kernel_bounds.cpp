// Interval arithmetic on the index of every access, once it is simplified; where that does not
// tell, the iterations themselves.
#include "tensor/kernel_bounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"
#include "tensor/loop_points.h"

namespace weft {
namespace {

constexpr size_t kMostNodes = 256;  // of an index whose ends are looked at

// A RANGE by which some of the loop's rounds happen, whatever else does.
bool has_rounds(UOp range) { return range.src(0).is_const() && range.src(0).const_int() > 0; }

bool is_positive(UOp n) { return n.is_const() && n.const_int() > 0; }

bool is_exact_cast(UOp n) {
  return n.is(Op::CAST) && bounds(n.src(0)).within(bounds_of(n.dtype()));
}

// Whether the ends of the interval are values that it takes: a formula in which each range stands
// once and that rises or falls with each, or the remainder of a range.
bool reaches_its_bounds(UOp index) {
  std::vector<UOp> to_see = {index}, ranges;
  for (size_t seen = 0; !to_see.empty(); seen++) {
    const UOp n = to_see.back();
    to_see.pop_back();
    if (seen == kMostNodes) return false;
    if (n.is(Op::RANGE)) {
      if (!has_rounds(n) || std::ranges::find(ranges, n) != ranges.end()) return false;
      ranges.push_back(n);
      continue;
    }
    if (n.is_const()) continue;
    if (!n.dtype().is_index() && !is_exact_cast(n)) return false;  // it may wrap
    const bool is_sum = n.is(Op::ADD) || n.is(Op::SUB) || n.is(Op::NEG);
    const bool is_product = n.is(Op::MUL) && (n.src(0).is_const() || n.src(1).is_const());
    const bool is_quotient = n.is(Op::IDIV) && is_positive(n.src(1));
    const bool is_remainder = n.is(Op::MOD) && is_positive(n.src(1)) && n.src(0).is(Op::RANGE);
    const bool is_limit = n.is(Op::MIN) || n.is(Op::MAX) || n.is(Op::CAST);
    if (!is_sum && !is_product && !is_quotient && !is_remainder && !is_limit) return false;
    for (UOp source : n.srcs()) to_see.push_back(source);
  }
  return true;
}

// A loop over it has no rounds, or may have none.
bool may_be_idle(UOp access) {
  return std::ranges::any_of(toposort(access),
                             [](UOp n) { return n.is(Op::RANGE) && !has_rounds(n); });
}

// A read or a write: what it does to a pointer.
struct Access {
  UOp node, pointer;
  UOp gate;  // null: there is none
};

std::vector<Access> accesses_of(UOp n) {
  if (n.is(Op::STORE)) return {{n, n.src(0), n.src_count() > 2 ? n.src(2) : UOp()}};
  if (n.is(Op::LOAD)) return {{n, n.src(0), n.src_count() > 1 ? n.src(1) : UOp()}};
  if (!n.is(Op::FETCH)) return {};
  if (!n.src(1).dtype().is_pointer()) return {{n, n.src(0), {}}};
  const UOp gate = n.src_count() > 2 ? n.src(2) : UOp();
  return {{n, n.src(0), {}}, {n, n.src(1), gate}};
}

// What happens in every iteration of its loops, but for its own gate: not in the arm of a WHERE,
// and not for what is behind the gate of another access.
std::vector<UOp> done_for_sure(UOp kernel) {
  NodeMap seen(kernel.arena());
  std::vector<UOp> all, todo{kernel};
  while (!todo.empty()) {
    const UOp n = todo.back();
    todo.pop_back();
    if (seen.has(n)) continue;
    seen.put_number(n, 1);
    all.push_back(n);
    const std::vector<Access> accesses = accesses_of(n);
    const UOp gate = n.is(Op::WHERE) ? n.src(0) : accesses.empty() ? UOp() : accesses.back().gate;
    if (gate) {
      todo.push_back(gate);
    } else {
      todo.insert(todo.end(), n.srcs().begin(), n.srcs().end());
    }
  }
  return all;
}

// The number of elements of what a pointer points to; none: it is not known.
int64_t count_of(UOp base, std::span<const KernelMemory> memory) {
  if (base.is(Op::DEFINE_GLOBAL)) return memory[size_t(base.number())].count;
  return base.is(Op::DEFINE_LOCAL) && base.src_count() > 0 && base.src(0).is_const()
             ? base.src(0).const_int() * base.dtype().lanes
             : Interval::kHigh;
}

[[noreturn]] void fail(const Access& access, UOp base, UOp index, const std::string& places,
                       int64_t count) {
  const std::string name = base.is(Op::DEFINE_GLOBAL) ? fmt::format("memory {}", base.number())
                                                      : std::string("local memory");
  const bool is_write = !access.node.is(Op::LOAD) && access.pointer == access.node.src(0);
  const int lanes = access.pointer.dtype().lanes;
  throw IndexError(fmt::format("[custom_kernel] it {} {}{} at {}, {}; {} has {} elements",
                               is_write ? "writes" : "reads",
                               lanes > 1 ? fmt::format("{} elements of ", lanes) : std::string(),
                               name, short_form(index), places, name, count));
}

void check_access(const Access& access, std::span<const KernelMemory> memory) {
  UOp pointer = access.pointer;
  while (pointer.is(Op::CAST) || pointer.is(Op::AFTER)) pointer = pointer.src(0);
  if (!pointer.is(Op::INDEX) || !pointer.dtype().is_pointer()) return;
  const UOp base = place_of(pointer).base;
  LoopPlaces places{.index = pointer.src(1),
                    .gate = access.gate,
                    .within = access.node,
                    .unit = pointer.dtype().lanes,
                    .width = access.pointer.dtype().lanes,
                    .count = count_of(base, memory)};
  // Of the index, within which all elements are.
  const int64_t last = (places.count - places.width) / places.unit;
  const bool has_none = places.count < places.width;
  const auto is_within = [&](Interval i) { return !has_none && i.lo >= 0 && i.hi <= last; };
  if (places.count == Interval::kHigh || is_within(bounds(places.index))) return;
  places.index = simplify(places.index);
  const Interval reached = bounds(places.index);
  if (is_within(reached)) return;
  const bool is_outside = has_none || reached.hi < 0 || reached.lo > last;
  if (!access.gate && !may_be_idle(access.node) &&
      (is_outside || reaches_its_bounds(places.index))) {
    fail(access, base, places.index,
         fmt::format("which goes from {} to {}", reached.lo, reached.hi), places.count);
  }
  if (const std::optional<PlaceOutside> found = find_outside(places)) {
    fail(access, base, places.index,
         fmt::format("which is element {}{}{}", found->element, found->where.empty() ? "" : " at ",
                     found->where),
         places.count);
  }
}

void check_definition(UOp global, std::span<const KernelMemory> memory) {
  const DType dtype = global.dtype().element();
  const KernelMemory& given = memory[size_t(global.number())];
  if (dtype == given.dtype) return;
  throw SpecError(fmt::format("[custom_kernel] memory {} has dtype {}, and is defined as {}",
                              global.number(), given.dtype.name(), dtype.name()));
}

}  // namespace

void check_accesses(UOp kernel, std::span<const KernelMemory> memory) {
  for (UOp n : toposort(kernel)) {
    if (n.is(Op::DEFINE_GLOBAL)) check_definition(n, memory);
  }
  for (UOp n : done_for_sure(kernel)) {
    for (const Access& access : accesses_of(n)) check_access(access, memory);
  }
}

}  // namespace weft
