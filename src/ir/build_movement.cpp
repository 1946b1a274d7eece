// Movement ops and the other ops of tensor graphs, checked.
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"

namespace weft {
namespace {

// x, then lists of numbers one after the other, as the sources of a node like x.
UOp make_view(Op op, UOp x, std::initializer_list<Shape> lists, const Arg& arg = {}) {
  Arena& arena = x.arena();
  std::vector<UOp> srcs{x};
  for (const Shape list : lists) {
    for (const Dim d : list) srcs.push_back(d.as_uop(arena));
  }
  const UOp n = arena.make(op, x.dtype(), srcs, arg);
  check_node(n);
  return n;
}

UOp make_view_of_pairs(Op op, UOp x, std::span<const std::pair<Dim, Dim>> pairs) {
  std::vector<Dim> firsts, seconds;
  for (const auto& [first, second] : pairs) {
    firsts.push_back(first);
    seconds.push_back(second);
  }
  return make_view(op, x, {firsts, seconds});
}

}  // namespace

UOp reshape(UOp x, Shape sizes) { return make_view(Op::RESHAPE, x, {sizes}); }

UOp permute(UOp x, std::span<const int64_t> order) {
  return make_view(Op::PERMUTE, x, {}, Arg::ints(order));
}

UOp expand(UOp x, Shape sizes) { return make_view(Op::EXPAND, x, {sizes}); }

UOp pad(UOp x, std::span<const std::pair<Dim, Dim>> before_after) {
  return make_view_of_pairs(Op::PAD, x, before_after);
}

UOp shrink(UOp x, std::span<const std::pair<Dim, Dim>> begin_end) {
  return make_view_of_pairs(Op::SHRINK, x, begin_end);
}

UOp flip(UOp x, std::span<const int64_t> axes) {
  return make_view(Op::FLIP, x, {}, Arg::ints(axes));
}

UOp strided_view(UOp x, Shape sizes, Shape strides, Dim offset) {
  return make_view(Op::VIEW, x, {sizes, strides, Shape(&offset, 1)});
}

UOp reduce_axis(Op op, UOp x, std::span<const int64_t> axes) {
  std::vector<int64_t> list{int64_t(op)};
  list.insert(list.end(), axes.begin(), axes.end());
  return make_view(Op::REDUCE_AXIS, x, {}, Arg::op_ints(list));
}

UOp contiguous(UOp x) { return make_view(Op::CONTIGUOUS, x, {}); }

UOp detach(UOp x) { return make_view(Op::DETACH, x, {}); }

UOp copy_to(UOp x, std::string_view device_name) {
  Arena& arena = x.arena();
  const UOp n = arena.make(Op::COPY, x.dtype(), {x, device(arena, device_name)});
  check_node(n);
  return n;
}

}  // namespace weft
