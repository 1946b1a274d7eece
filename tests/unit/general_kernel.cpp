// Kernels that differ in numbers have one skeleton, and one kernel with parameters serves them.
#include "codegen/general_kernel.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/sort_sums.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"

namespace weft {
namespace {

using Sizes = std::vector<int64_t>;

// to[i*stride + j] = from[i*stride + j] * scale
UOp kernel(Arena& arena, int64_t rows, int64_t columns, int64_t stride, float scale) {
  const UOp to = define_global(arena, dtypes::float32, rows * stride, 0);
  const UOp from = define_global(arena, dtypes::float32, rows * stride, 1);
  const UOp i = range(arena, rows, 0, AxisType::kLoop),
            j = range(arena, columns, 1, AxisType::kLoop);
  const UOp at = i * index_const(arena, stride) + j;
  const UOp value =
      load(index(from, at)) * constant_bits(arena, dtypes::float32, std::bit_cast<uint32_t>(scale));
  return sink(end(end(index(to, at).assign(value), j), i));
}

KernelNumbers numbers_of(UOp ast) { return kernel_skeleton(ast).numbers; }

TEST(GeneralKernel, NumbersAreNoPartOfTheSkeleton) {
  Arena arena;
  const UOp a = kernel(arena, 4, 8, 16, 0.5F);
  EXPECT_EQ(kernel_skeleton(a).hash, kernel_skeleton(kernel(arena, 7, 9, 30, 2.5F)).hash);
  EXPECT_NE(kernel_skeleton(a).hash, kernel_skeleton(kernel(arena, 1, 8, 16, 0.5F)).hash);
}

TEST(GeneralKernel, ServesWhatTheSamplesHaveInCommon) {
  Arena arena;
  const UOp a = kernel(arena, 4, 8, 16, 0.5F), b = kernel(arena, 6, 8, 20, 0.25F);
  const std::vector<KernelNumbers> samples{numbers_of(a), numbers_of(b)};
  const std::optional<KernelRules> rules = KernelRules::of(b, samples);
  ASSERT_TRUE(rules.has_value());
  EXPECT_TRUE(rules->has_variable_sizes());
  EXPECT_EQ(rules->scalar_type(), dtypes::float32);
  const auto of_a = rules->values(samples[0]), of_b = rules->values(samples[1]);
  ASSERT_TRUE(of_a && of_b);
  EXPECT_NE(of_a->sizes, of_b->sizes);
  EXPECT_EQ(of_a->scalars.size(), 1U);
  EXPECT_FALSE(rules->values(numbers_of(kernel(arena, 6, 9, 20, 0.5F))));  // 8 in both
  // One kernel, whichever it is made of.
  EXPECT_EQ(graph_hash(rules->kernel(a).root), graph_hash(rules->kernel(b).root));
}

// The terms of a sum in another order, as a simplification in an arena with other names leaves
// them.
TEST(SortSums, TheOrderOfTermsIsNoPartOfAKernel) {
  Arena arena;
  const auto spelled = [&](bool is_first) {
    const UOp to = define_global(arena, dtypes::float32, 64, 0);
    const UOp i = range(arena, 8, 0, AxisType::kLoop), j = range(arena, 8, 1, AxisType::kLoop);
    const UOp rows = i * index_const(arena, 8);
    const UOp at = is_first ? rows + j : j + rows;
    return sink(end(end(index(to, at).assign(constant_bits(arena, dtypes::float32, 0)), j), i));
  };
  const UOp a = spelled(true), b = spelled(false);
  EXPECT_NE(graph_hash(a), graph_hash(b));
  EXPECT_EQ(graph_hash(sort_sums(a)), graph_hash(sort_sums(b)));
}

}  // namespace
}  // namespace weft
