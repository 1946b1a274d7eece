// Kernels that read and write the same parts of other memory, or other parts of it, are one.
#include "codegen/relative_kernel.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"

namespace weft {
namespace {

using Offsets = std::vector<int64_t>;

// to[i + first] = from[2*i + second] + from[2*i + second + 5], of memory with so many elements
UOp kernel(Arena& arena, int64_t first, int64_t second, int64_t elements) {
  const UOp to = define_global(arena, dtypes::float32, elements, 0);
  const UOp from = define_global(arena, dtypes::float32, elements, 1);
  const UOp i = range(arena, 8, 0, AxisType::kLoop);
  const auto plus = [&](UOp x, int64_t n) { return n == 0 ? x : x + index_const(arena, n); };
  const UOp twice = i * index_const(arena, 2);
  const UOp value =
      load(index(from, plus(twice, second))) + load(index(from, plus(twice, second + 5)));
  const UOp stored = index(to, plus(i, first)).assign(value);
  return sink(end(stored, i));
}

TEST(RelativeKernel, PlacesAreNoPartOfIt) {
  Arena arena;
  const RelativeKernel a = relative_kernel(kernel(arena, 0, 0, 20));
  const RelativeKernel b = relative_kernel(kernel(arena, 3, 40, 100));
  EXPECT_EQ(graph_hash(a.root), graph_hash(b.root));
  EXPECT_EQ(a.offsets, (Offsets{0, 0}));
  EXPECT_EQ(b.offsets, (Offsets{3, 40}));
}

TEST(RelativeKernel, DistancesAre) {
  Arena arena;
  const UOp to = define_global(arena, dtypes::float32, 20, 0);
  const UOp i = range(arena, 8, 0, AxisType::kLoop);
  const auto copy = [&](int64_t step) {
    const UOp from = define_global(arena, dtypes::float32, 100, 1);
    const UOp at = i * index_const(arena, step);
    return relative_kernel(sink(end(index(to, i).assign(load(index(from, at))), i)));
  };
  EXPECT_NE(graph_hash(copy(2).root), graph_hash(copy(3).root));
}

// A read past the memory is not made legal.
TEST(RelativeKernel, WhatMayLieOutsideStays) {
  Arena arena;
  const UOp ast = kernel(arena, 1, 10, 20);
  const RelativeKernel relative = relative_kernel(ast);
  EXPECT_EQ(relative.offsets, (Offsets{1, 0}));
}

}  // namespace
}  // namespace weft
