// Index arithmetic, folded while it is built.
#include "schedule/rangeify/index_math.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/reads.h"
#include "rewrite/graph_rewrite.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

bool is_number(UOp n, int64_t value) { return n.is_const() && n.const_int() == value; }

}  // namespace

UOp index_add(Arena& arena, UOp a, UOp b) {
  if (is_number(a, 0)) return b;
  if (is_number(b, 0)) return a;
  int64_t sum = 0;
  if (a.is_const() && b.is_const() && !__builtin_add_overflow(a.const_int(), b.const_int(), &sum)) {
    return index_const(arena, sum);
  }
  return arena.make(Op::ADD, dtypes::index, {a, b});
}

UOp index_mul(Arena& arena, UOp a, UOp b) {
  if (is_number(a, 1)) return b;
  if (is_number(b, 1)) return a;
  if (is_number(a, 0)) return a;
  if (is_number(b, 0)) return b;
  int64_t product = 0;
  if (a.is_const() && b.is_const() &&
      !__builtin_mul_overflow(a.const_int(), b.const_int(), &product)) {
    return index_const(arena, product);
  }
  return arena.make(Op::MUL, dtypes::index, {a, b});
}

UOp index_div(Arena& arena, UOp a, UOp b) {
  if (is_number(b, 1)) return a;
  return arena.make(Op::IDIV, dtypes::index, {a, b});
}

UOp index_mod(Arena& arena, UOp a, UOp b) {
  if (is_number(b, 1)) return index_const(arena, 0);
  return arena.make(Op::MOD, dtypes::index, {a, b});
}

UOp index_and(Arena& arena, UOp a, UOp b) {
  if (!a || a == b) return b;
  if (!b) return a;
  return arena.make(Op::AND, dtypes::bool_, {a, b});
}

UOp simplify_index(UOp n) {
  if (n.src_count() == 0 || n.is(Op::RANGE) || n.is(Op::VARIABLE)) return n;
  // Memory is known by its node, which is not to change in one place alone.
  if (reads_of(n) == Reads::kMemory) return n;
  return graph_rewrite(n, ungated_rules());
}

IndexList strides_of(Arena& arena, Shape shape) {
  IndexList strides(shape.size());
  UOp stride = index_const(arena, 1);
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride = index_mul(arena, shape[i].as_uop(arena), stride);
  }
  return strides;
}

UOp flat_index(Arena& arena, Shape shape, std::span<const UOp> at) {
  const IndexList strides = strides_of(arena, shape);
  UOp flat = index_const(arena, 0);
  for (size_t i = 0; i < at.size(); i++) {
    flat = index_add(arena, flat, index_mul(arena, at[i], strides[i]));
  }
  return flat;
}

IndexList unflatten(Arena& arena, Shape shape, UOp flat) {
  IndexList at(shape.size(), index_const(arena, 0));
  size_t first = 0;  // the outermost axis that has more than one place
  while (first < shape.size() && shape[first].is(1)) first++;
  for (size_t i = shape.size(); i-- > first;) {
    if (shape[i].is(1)) continue;
    const UOp size = shape[i].as_uop(arena);
    at[i] = simplify_index(i == first ? flat : index_mod(arena, flat, size));
    if (i != first) flat = simplify_index(index_div(arena, flat, size));
  }
  return at;
}

}  // namespace weft
