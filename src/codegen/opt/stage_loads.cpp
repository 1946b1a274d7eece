// LOAD(x) in the loops i inside of the range becomes LOAD(AFTER(local, END(STORE(local[j], x at j),
// j))[i]).
#include "codegen/opt/stage_loads.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
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

// The ranges around `range` in what closes it, and itself.
std::vector<UOp> outside(UOp sink, UOp range) {
  std::vector<UOp> out;
  for (UOp closer : closers_of(sink, range)) {
    for (UOp r : closer.srcs().subspan(1)) {
      out.push_back(r);
      if (r == range) break;
    }
    const std::span<const UOp> open = ranges_of(closer);
    out.insert(out.end(), open.begin(), open.end());
  }
  return out;
}

// Lanes are innermost; else the loop with the larger step in memory is the outer one, as it is
// there.
bool is_outer(UOp load, UOp a, UOp b) {
  const bool a_is_lane = a.axis() == AxisType::kLane, b_is_lane = b.axis() == AxisType::kLane;
  if (a_is_lane != b_is_lane) return b_is_lane;
  return std::abs(step_of(load, a).value_or(0)) > std::abs(step_of(load, b).value_or(0));
}

std::vector<UOp> inside(UOp load, std::span<const UOp> around) {
  std::vector<UOp> out;
  for (UOp r : ranges_of(load)) {
    if (std::ranges::find(around, r) == around.end()) out.push_back(r);
  }
  std::ranges::stable_sort(out, [&](UOp a, UOp b) { return is_outer(load, a, b); });
  return out;
}

constexpr int64_t kLineBytes = 64;
// Rows that are a multiple of this apart share the same lines of a cache.
constexpr int64_t kConflictBytes = 1024;

// Such rows are made longer.
std::vector<int64_t> strides_of(std::span<const UOp> ranges, int64_t item_bytes) {
  std::vector<int64_t> strides(ranges.size());
  int64_t stride = 1;
  for (size_t i = ranges.size(); i-- > 0;) {
    if (stride > 1 && stride * item_bytes % kConflictBytes == 0) stride += kLineBytes / item_bytes;
    strides[i] = stride;
    stride *= ranges[i].src(0).const_int();
  }
  return strides;
}

UOp address(std::span<const UOp> ranges, std::span<const int64_t> strides) {
  UOp at = index_const(ranges[0].arena(), 0);
  for (size_t i = 0; i < ranges.size(); i++) at = at + ranges[i] * strides[i];
  return simplify(at, nullptr, Loads::kStay);
}

class Stager {
 public:
  Stager(UOp sink, UOp range) : arena_(sink.arena()), next_id_(free_range_id(sink)) {
    around_ = outside(sink, range);
  }

  // What is computed from the read is computed when it is staged.
  UOp staged(UOp read, UOp computed) {
    const std::vector<UOp> loops = inside(read, around_);
    const std::vector<int64_t> strides = strides_of(loops, computed.dtype().item_bytes());
    const int64_t size = strides[0] * loops[0].src(0).const_int();
    std::vector<UOp> fill;
    std::vector<std::pair<UOp, UOp>> replacements;
    for (UOp r : loops) {
      const AxisType axis = r.axis() == AxisType::kLane ? r.axis() : AxisType::kGlobal;
      fill.push_back(
          arena_.make(Op::RANGE, dtypes::index, {r.src(0)}, Arg::range(next_id_++, axis)));
      replacements.emplace_back(r, fill.back());
    }
    const UOp local = define_local(arena_, computed.dtype(), size, arena_.fresh_id());
    const UOp value = replace_ranges(computed, replacements);
    const UOp filled = end(index(local, address(fill, strides)).assign(value), fill);
    return load(index(after(local, filled), address(loops, strides)));
  }

 private:
  Arena& arena_;
  int64_t next_id_;
  std::vector<UOp> around_;
};

// Whether the load stands in lanes, copies or threads of a group that would all fill one local
// memory.
bool is_in_copies(UOp load, std::span<const UOp> loops_inside) {
  return std::ranges::any_of(ranges_of(load), [&](UOp r) {
    const bool is_copied = r.axis() == AxisType::kLane || r.axis() == AxisType::kUpcast ||
                           r.axis() == AxisType::kUnroll || r.axis() == AxisType::kGroupReduce ||
                           r.axis() == AxisType::kLocal;
    return is_copied && std::ranges::find(loops_inside, r) == loops_inside.end();
  });
}

// What the only uses of a read make of it and constants: a cast, a factor.
UOp computed_from(UOp read, UOp sink) {
  UOp computed = read;
  for (UOp n : toposort(sink)) {  // users come after what they use
    const bool is_user = std::ranges::find(n.srcs(), computed) != n.srcs().end();
    if (!is_user) continue;
    const bool is_step =
        is_elementwise(n.op()) && !n.dtype().is_bool() && !n.dtype().is_index() &&
        std::ranges::all_of(n.srcs(), [&](UOp s) { return s == computed || s.is_const(); });
    const auto users = std::ranges::count_if(toposort(sink), [&](UOp other) {
      return std::ranges::find(other.srcs(), computed) != other.srcs().end();
    });
    if (!is_step || users != 1) return computed;
    computed = n;
  }
  return computed;
}

}  // namespace

std::vector<UOp> loads_to_stage(UOp sink, int64_t argument, UOp range) {
  const std::vector<UOp> around = outside(sink, range);
  std::vector<UOp> out;
  for (UOp n : toposort(sink)) {
    if (!n.is(Op::LOAD) || !is_in_scope(range, n)) continue;
    const UOp base = place_of(n.src(0)).base;
    if (!base.is(Op::DEFINE_GLOBAL) || base.number() != argument) continue;
    const std::vector<UOp> loops = inside(n, around);
    const bool is_constant = std::ranges::all_of(loops, [](UOp r) { return r.src(0).is_const(); });
    if (!loops.empty() && is_constant && !is_in_copies(n, loops)) out.push_back(n);
  }
  return out;
}

UOp stage_loads(UOp sink, int64_t argument, UOp range) {
  Stager stager(sink, range);
  std::vector<std::pair<UOp, UOp>> pairs;
  for (UOp n : loads_to_stage(sink, argument, range)) {
    const UOp computed = computed_from(n, sink);
    pairs.emplace_back(computed, stager.staged(n, computed));
  }
  return rebuild(sink, [&](UOp n, std::span<const UOp> srcs) {
    for (const auto& [from, to] : pairs) {
      if (n == from) return to;
    }
    return sink.arena().with_srcs(n, srcs);
  });
}

}  // namespace weft
