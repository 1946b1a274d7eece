// LOAD(x) in the loops i inside of the range becomes LOAD(AFTER(local, END(STORE(local[j], x at j), j))[i]).
#include "codegen/opt/stage_loads.h"

#include <algorithm>
#include <array>
#include <cstdint>
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

int rank(UOp range) {  // loops, then copies, then lanes
  switch (range.axis()) {
    case AxisType::kLane: return 2;
    case AxisType::kUpcast:
    case AxisType::kUnroll: return 1;
    default: return 0;
  }
}

std::vector<UOp> inside(UOp load, std::span<const UOp> around) {
  std::vector<UOp> out;
  for (UOp r : ranges_of(load)) {
    if (std::ranges::find(around, r) == around.end()) out.push_back(r);
  }
  std::ranges::stable_sort(out, {}, rank);
  return out;
}

UOp row_major(std::span<const UOp> ranges) {
  UOp at = ranges[0];
  for (UOp r : ranges.subspan(1)) at = at * r.src(0) + r;
  return at;
}

class Stager {
 public:
  Stager(UOp sink, UOp range) : arena_(sink.arena()), next_id_(free_range_id(sink)) {
    around_ = outside(sink, range);
  }

  UOp staged(UOp load_) {
    const std::vector<UOp> loops = inside(load_, around_);
    int64_t size = 1;
    std::vector<UOp> fill;
    std::vector<std::pair<UOp, UOp>> replacements;
    for (UOp r : loops) {
      size *= r.src(0).const_int();
      const AxisType axis = r.axis() == AxisType::kReduce ? AxisType::kLoop : r.axis();
      fill.push_back(arena_.make(Op::RANGE, dtypes::index, {r.src(0)}, Arg::range(next_id_++, axis)));
      replacements.emplace_back(r, fill.back());
    }
    const UOp local = define_local(arena_, load_.dtype(), size, arena_.fresh_id());
    const UOp value = replace_ranges(load_, replacements);
    const UOp filled = end(index(local, simplify(row_major(fill))).assign(value), fill);
    return load(index(after(local, filled), simplify(row_major(loops))));
  }

 private:
  Arena& arena_;
  int64_t next_id_;
  std::vector<UOp> around_;
};

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
    if (!loops.empty() && is_constant) out.push_back(n);
  }
  return out;
}

UOp stage_loads(UOp sink, int64_t argument, UOp range) {
  Stager stager(sink, range);
  std::vector<std::pair<UOp, UOp>> pairs;
  for (UOp n : loads_to_stage(sink, argument, range)) pairs.emplace_back(n, stager.staged(n));
  return rebuild(sink, [&](UOp n, std::span<const UOp> srcs) {
    for (const auto& [from, to] : pairs) {
      if (n == from) return to;
    }
    return sink.arena().with_srcs(n, srcs);
  });
}

}  // namespace weft
