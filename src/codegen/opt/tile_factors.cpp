// Tiles are blocks of 64 x 64 elements, each in row-major order in the direction in which its
// argument lies in memory. A factor that is memory in aligned vectors is copied, any other is
// computed by the thread that fetches it.
#include "codegen/opt/tile_factors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "codegen/opt/loops.h"
#include "codegen/opt/tile_boxes.h"
#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/box.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/linear.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

// A LOAD of global memory, with zeros where it has a gate.
bool is_plain_read(UOp half) {
  return half.is(Op::LOAD) && (half.src_count() == 1 || is_zero(half.src(2))) &&
         place_of(half.src(0)).base.is(Op::DEFINE_GLOBAL);
}

// Copied in vectors along one of its axes.
bool is_copied(UOp half, UOp across, UOp sum) {
  return is_fetched_along(half, sum) || is_fetched_along(half, across);
}

// Whether a factor is in order along `across`. What is computed is as its reads are.
bool is_transposed(UOp half, UOp across, UOp sum) {
  if (is_copied(half, across, sum)) return !is_fetched_along(half, sum);
  int64_t along = 0;
  for (UOp n : toposort(half)) {
    if (!n.is(Op::LOAD) || is_register(n.src(0))) continue;
    along += int64_t(step_of(n, across) == 1) - int64_t(step_of(n, sum) == 1);
  }
  return along > 0;
}

std::optional<RangedArray> array_of(UOp half, UOp across, UOp sum) {
  std::optional<RangedArray> out;
  if (!is_copied(half, across, sum)) return out;
  const bool is_across = is_transposed(half, across, sum);
  const UOp rows = is_across ? sum : across;
  out = ranged_array(half, is_across ? across : sum);
  if (out && std::ranges::find(out->axes, rows, &RangedArray::Axis::range) == out->axes.end()) {
    out.reset();
  }
  return out;
}

UOp vector_at(UOp pointer) {
  return pointer.arena().make(Op::CAST, pointer.dtype().vec(uint16_t(kFetched)), {pointer});
}

// Where the ranges of a factor are.
std::vector<std::pair<UOp, UOp>> places_of(const TileFactor& f, const TilePlace& p, UOp across,
                                           UOp depth) {
  std::vector<std::pair<UOp, UOp>> places{{f.across, simplify(across)}, {f.sum, simplify(depth)}};
  places.insert(places.end(), p.others.begin(), p.others.end());
  return places;
}

}  // namespace

UOp half_of(UOp factor) {
  if (!factor.is(Op::CAST)) return {};
  const UOp half = factor.src(0);
  const bool is_half = half.dtype() == dtypes::float16 || half.dtype() == dtypes::bfloat16;
  return is_half ? half : UOp();
}

bool is_zero(UOp n) { return n.is_const() && n.bits() == 0; }

bool is_fetched_along(UOp read, UOp range) {
  if (!is_plain_read(read) || step_of(read, range) != 1) return false;
  const std::optional<LinearSum> sum = linear_sum(index_of(read));
  if (!sum || sum->constant % kFetched != 0) return false;
  const bool is_aligned = std::ranges::all_of(
      sum->terms, [&](const Term& t) { return t.base == range || t.coefficient % kFetched == 0; });
  if (!is_aligned || read.src_count() == 1) return is_aligned;
  // One gate for all of them.
  Arena& arena = read.arena();
  const auto new_range = [&](int64_t size) {
    return arena.make(Op::RANGE, dtypes::index, {index_const(arena, size)},
                      Arg::range(arena.fresh_id(), AxisType::kLoop));
  };
  const UOp vector = new_range(range.src(0).const_int() / kFetched), lane = new_range(kFetched);
  const std::pair<UOp, UOp> place{range, vector * kFetched + lane};
  return !is_in_scope(lane, simplify(replace_ranges(read.src(1), {&place, 1})));
}

TileFactor tile_factor(UOp half, UOp across, UOp sum, TileCopies copies) {
  return {half,
          across,
          sum,
          is_copied(half, across, sum),
          is_transposed(half, across, sum),
          copies == TileCopies::kBoxes ? array_of(half, across, sum) : std::nullopt};
}

UOp read_only_if(UOp value, UOp gate) {
  if (gate.is_const() && gate.bits() != 0) return value;
  Arena& arena = value.arena();
  return rebuild(value, [&](UOp n, std::span<const UOp> srcs) {
    const UOp made = arena.with_srcs(n, srcs);
    if (!n.is(Op::LOAD) || is_register(n.src(0))) return made;
    const UOp zero = arena.make(Op::CONST, n.dtype(), {}, Arg::bits(0));
    return n.src_count() == 3 ? load(made.src(0), made.src(1) & gate, made.src(2))
                              : load(made.src(0), gate, zero);
  });
}

void TileFetcher::fetch(const TileFactor& f, const TilePlace& p, UOp local, UOp at,
                        std::vector<UOp>& out) {
  if (f.array) {
    // Rows along the sum are those of one block after the other.
    const int64_t rows = f.is_transposed ? kTileSide : p.count;
    for (int64_t first = 0; first < p.count; first += rows) {
      out.push_back(fetch_box(f, p, first, rows, local, at));
    }
    return;
  }
  for (int64_t k = 0; k < p.count * kTileDepth / kFetched / kTileThreads; k++) {
    out.push_back(fetch_one(f, p, k, local, at));
  }
}

// The factor's places from `first` of the tile's on.
UOp TileFetcher::fetch_box(const TileFactor& f, const TilePlace& p, int64_t first, int64_t rows,
                           UOp local, UOp at) {
  const std::vector<std::pair<UOp, UOp>> places = places_of(f, p, p.first + first, p.depth);
  Box box{rows, 0, f.array->offset, {}};
  const UOp to = index(local, simplify(at + first * kTileDepth));
  std::vector<UOp> srcs{to, f.array->memory, thread_, p.gate};
  for (const RangedArray::Axis& axis : f.array->axes) {
    if (axis.range == (f.is_transposed ? f.sum : f.across)) box.row_axis = int64_t(box.axes.size());
    box.axes.push_back({axis.size, axis.step});
    srcs.push_back(simplify(replace_ranges(axis.range, places)));
  }
  return arena_.make(Op::FETCH_BOX, dtypes::void_, srcs, Arg::ints(box.ints()));
}

// This thread's k-th vector of a factor.
UOp TileFetcher::fetch_one(const TileFactor& f, const TilePlace& p, int64_t k, UOp local, UOp at) {
  constexpr int64_t vectors = kTileSide / kFetched,
                    rows = kTileThreads / vectors;  // of a row; at a time
  const int64_t block = k * rows / kTileSide, first = k * rows % kTileSide;
  const UOp row = thread_ / vectors + first, along = thread_ % vectors * kFetched;
  const UOp to =
      vector_at(index(local, simplify(at + block * kTileBlock + row * kTileSide + along)));
  UOp lane;
  if (!f.is_copied) {
    lane = arena_.make(Op::RANGE, dtypes::index, {index_const(arena_, kFetched)},
                       Arg::range(next_id_++, AxisType::kLane));
  }
  const UOp in_row = lane ? along + lane : along;
  const UOp across = p.first + block * kTileSide + (f.is_transposed ? in_row : row);
  const UOp depth = p.depth + (f.is_transposed ? row : in_row);
  const std::vector<std::pair<UOp, UOp>> places = places_of(f, p, across, depth);
  if (lane) {
    const UOp value = replace_ranges(read_only_if(f.value, p.gate), places);
    return end(arena_.make(Op::FETCH, dtypes::void_, {to, value}), lane);
  }
  std::vector<UOp> srcs{to, vector_at(replace_ranges(f.value.src(0), places))};
  UOp gate = p.gate;
  if (f.value.src_count() == 3) gate = gate & replace_ranges(f.value.src(1), places);
  gate = simplify(gate);
  if (!gate.is_const() || gate.bits() == 0) srcs.push_back(gate);
  return arena_.make(Op::FETCH, dtypes::void_, srcs);
}

}  // namespace weft
