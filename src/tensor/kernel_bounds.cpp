// Interval arithmetic on the index of every access, once it is simplified.
#include "tensor/kernel_bounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr size_t kMostNodes = 256;  // of an index whose ends are looked at

// A RANGE by which some of the loop's rounds happen, whatever else does.
bool has_rounds(UOp range) { return range.src(0).is_const() && range.src(0).const_int() > 0; }

bool is_positive(UOp n) { return n.is_const() && n.const_int() > 0; }

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

bool is_gated(UOp access) {
  return access.src_count() == 3 || (access.is(Op::LOAD) && access.src_count() > 1);
}

// The number of elements of what a pointer points to; none: it is not known.
int64_t count_of(UOp base, std::span<const KernelMemory> memory) {
  if (base.is(Op::DEFINE_GLOBAL)) return memory[size_t(base.number())].count;
  return base.is(Op::DEFINE_LOCAL) && base.src_count() > 0 && base.src(0).is_const()
             ? base.src(0).const_int()
             : Interval::kHigh;
}

void check_access(UOp access, std::span<const KernelMemory> memory) {
  const UOp pointer = access.src(0);
  if (!pointer.is(Op::INDEX) || !pointer.dtype().is_pointer() || is_gated(access)) return;
  const UOp base = place_of(pointer).base;
  const int64_t count = count_of(base, memory);
  const auto is_within = [&](Interval i) { return i.lo >= 0 && i.hi < count; };
  if (is_within(bounds(pointer.src(1)))) return;
  const UOp index = simplify(pointer.src(1));
  const Interval reached = bounds(index);
  if (is_within(reached)) return;
  const bool is_outside = reached.hi < 0 || reached.lo >= count;
  if (may_be_idle(access) || !(is_outside || reaches_its_bounds(index))) return;
  const std::string name = base.is(Op::DEFINE_GLOBAL) ? fmt::format("memory {}", base.number())
                                                      : std::string("local memory");
  throw IndexError(
      fmt::format("[custom_kernel] it {} {} at {}, which goes from {} to {}; {} has {} elements",
                  access.is(Op::STORE) ? "writes" : "reads", name, short_form(index), reached.lo,
                  reached.hi, name, count));
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
    if (n.is(Op::LOAD) || n.is(Op::STORE)) check_access(n, memory);
  }
}

}  // namespace weft
