// One index transformation per movement op.
#include "schedule/rangeify/movement.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/shape.h"
#include "schedule/rangeify/index_math.h"

namespace weft {
namespace {

struct Step {
  Arena& arena;
  UOp n;     // the movement op
  Shape in;  // the shape of its source
  Access& access;
  bool divides = false;  // an index was cut into those of several axes
  UOp view_offset{};     // of a VIEW: the offset that was cut
};
using Move = IndexList (*)(Step& s, const IndexList& at);

// One run of axes: `in` sizes and `out` sizes have the same product.
void reshape_run(Step& s, Shape in, Shape out, std::span<const UOp> at, std::span<UOp> result) {
  if (in.size() == 1 && out.size() == 1) {
    result[0] = at[0];
    return;
  }
  const UOp flat = out.size() == 1 ? at[0] : flat_index(s.arena, out, at);
  if (in.size() == 1) {
    result[0] = simplify_index(flat);
    return;
  }
  s.divides = true;
  const IndexList parts = unflatten(s.arena, in, flat);
  for (size_t i = 0; i < parts.size(); i++) result[i] = parts[i];
}

// Axes are matched in the shortest runs of equal products, so that axes that a reshape leaves alone
// keep their index. A run with a symbolic size that has no equal partner takes all that is left.
IndexList move_reshape(Step& s, const IndexList& at) {
  const Shape out = shape_of(s.n);
  IndexList result(s.in.size(), index_const(s.arena, 0));
  size_t i = 0, o = 0;
  while (true) {
    while (i < s.in.size() && s.in[i].is(1)) i++;
    while (o < out.size() && out[o].is(1)) o++;
    if (i == s.in.size() || o == out.size()) return result;
    const size_t from_i = i, from_o = o;
    if (s.in[i] == out[o]) {
      i++, o++;
    } else if (!s.in[i].is_int() || !out[o].is_int()) {
      i = s.in.size(), o = out.size();
    } else {
      int64_t in_size = s.in[i++].value(), out_size = out[o++].value();
      while (in_size != out_size) {
        const bool grow_in = in_size < out_size;
        const bool is_at_end = grow_in ? i == s.in.size() : o == out.size();
        if (is_at_end || !(grow_in ? s.in[i] : out[o]).is_int()) {
          i = s.in.size(), o = out.size();
          break;
        }
        (grow_in ? in_size : out_size) *= (grow_in ? s.in[i++] : out[o++]).value();
      }
    }
    reshape_run(s, s.in.subspan(from_i, i - from_i), out.subspan(from_o, o - from_o),
                std::span(at).subspan(from_o, o - from_o),
                std::span(result).subspan(from_i, i - from_i));
  }
}

IndexList move_permute(Step& s, const IndexList& at) {
  IndexList result(at.size());
  const std::span<const int64_t> order = s.n.ints();
  for (size_t i = 0; i < at.size(); i++) result[size_t(order[i])] = at[i];
  return result;
}

IndexList move_expand(Step& s, const IndexList& at) {
  IndexList result = at;
  const Shape out = shape_of(s.n);
  for (size_t i = 0; i < at.size(); i++) {
    if (s.in[i] == out[i]) continue;
    result[i] = index_const(s.arena, 0);
    s.access.repeats = true;
  }
  return result;
}

IndexList move_shrink(Step& s, const IndexList& at) {
  IndexList result(at.size());
  for (size_t i = 0; i < at.size(); i++) {
    result[i] = simplify_index(index_add(s.arena, at[i], s.n.src(1 + i)));
  }
  return result;
}

IndexList move_pad(Step& s, const IndexList& at) {
  IndexList result(at.size());
  for (size_t i = 0; i < at.size(); i++) {
    const UOp before = s.n.src(1 + i), after = s.n.src(1 + at.size() + i);
    const UOp size = s.in[i].as_uop(s.arena), minus = index_const(s.arena, -1);
    const bool has_before = !Dim(before).is(0), has_after = !Dim(after).is(0);
    if (has_before) {
      const UOp last_outside = simplify_index(index_add(s.arena, before, minus));
      s.access.gate = index_and(s.arena, s.access.gate,
                                s.arena.make(Op::CMPLT, dtypes::bool_, {last_outside, at[i]}));
    }
    if (has_after) {
      const UOp end = simplify_index(index_add(s.arena, before, size));
      s.access.gate =
          index_and(s.arena, s.access.gate, s.arena.make(Op::CMPLT, dtypes::bool_, {at[i], end}));
    }
    result[i] = !has_before
                    ? at[i]
                    : simplify_index(index_add(s.arena, at[i], index_mul(s.arena, before, minus)));
  }
  return result;
}

IndexList move_flip(Step& s, const IndexList& at) {
  IndexList result = at;
  for (const int64_t axis : s.n.ints()) {
    const UOp minus = index_const(s.arena, -1);
    const UOp last = index_add(s.arena, s.in[size_t(axis)].as_uop(s.arena), minus);
    UOp& index = result[size_t(axis)];
    index = simplify_index(index_add(s.arena, index_mul(s.arena, index, minus), last));
  }
  return result;
}

IndexList move_view(Step& s, const IndexList& at) {
  UOp flat = s.n.src(1 + 2 * at.size());
  for (size_t i = 0; i < at.size(); i++) {
    flat = index_add(s.arena, flat, index_mul(s.arena, at[i], s.n.src(1 + at.size() + i)));
  }
  flat = simplify_index(flat);
  if (s.in.size() > 1) s.view_offset = flat;
  return unflatten(s.arena, s.in, flat);
}

IndexList move_nothing(Step&, const IndexList& at) { return at; }

constexpr std::array<Move, kOpCount> moves() {
  std::array<Move, kOpCount> table{};
  table[size_t(Op::RESHAPE)] = move_reshape;
  table[size_t(Op::PERMUTE)] = move_permute;
  table[size_t(Op::EXPAND)] = move_expand;
  table[size_t(Op::PAD)] = move_pad;
  table[size_t(Op::SHRINK)] = move_shrink;
  table[size_t(Op::FLIP)] = move_flip;
  table[size_t(Op::VIEW)] = move_view;
  table[size_t(Op::DETACH)] = move_nothing;
  return table;
}
constexpr auto kMoves = moves();

}  // namespace

Access follow_views(UOp n, std::span<const UOp> at) {
  Access access{n, IndexList(at.begin(), at.end()), {}, {}, false};
  Arena& arena = n.arena();
  while (const Move move = kMoves[size_t(access.base.op())]) {
    Step step{arena, access.base, shape_of(access.base.src(0)), access};
    const IndexList before = std::move(access.at);
    access.at = move(step, before);
    access.base = access.base.src(0);
    access.flat = {};
    // Row-major order is the same before and after a reshape.
    if (kMoves[size_t(access.base.op())] != nullptr) continue;
    if (step.divides) access.flat = simplify_index(flat_index(arena, shape_of(step.n), before));
    if (step.view_offset) access.flat = step.view_offset;
  }
  if (access.base.is(Op::AFTER) && is_register(access.base)) {
    access.at.assign(at.begin(), at.end());
    access.repeats = false;
  }
  return access;
}

}  // namespace weft
