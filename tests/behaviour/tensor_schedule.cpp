// Tensor::schedule lists what a realise would run, and runs nothing.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/op.h"
#include "ir/parse.h"
#include "tests/unit/tensor_helpers.h"
#include "value/value.h"
#include "weft/weft.h"

namespace weft {
namespace {

TEST(TensorSchedule, lists_the_kernels) {
  const Tensor x = test::counted({4, 8});
  Tensor y = (x + 1).sum({{1}});
  reset_counters();
  const int64_t pending = pending_values();
  const std::vector<ScheduledKernel> kernels = y.schedule();
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].name.substr(0, 2), "r_");
  EXPECT_EQ(kernels[0].buffers, 2U);
  EXPECT_EQ(kernels[0].bytes, 4U * (32 + 4));
  Arena arena;
  EXPECT_TRUE(parse(arena, kernels[0].graph).is(Op::SINK));
  EXPECT_EQ(counters().kernels, 0U);
  EXPECT_EQ(pending_values(), pending);
  EXPECT_FALSE(y.is_realized());

  y.realize();
  EXPECT_EQ(counters().kernels, 1U);
  EXPECT_EQ(counters().bytes, kernels[0].bytes);
  EXPECT_TRUE(y.schedule().empty());
  EXPECT_EQ(y.data<float>(), (test::Floats{36, 100, 164, 228}));
}

TEST(TensorSchedule, of_tensors_together) {
  const Tensor x = test::counted({8});
  const Tensor y = x + 1, z = x * 2, other = Tensor::ones({3}, dtypes::float32, "NULL") + 1;
  const Tensor* const same[] = {&y, &z};
  EXPECT_EQ(Tensor::schedule(same).size(), 1U);
  const Tensor* const all[] = {&y, &other};
  EXPECT_EQ(Tensor::schedule(all).size(), 2U);
}

TEST(TensorSchedule, leaves_writes_pending) {
  Tensor x = test::counted({8});
  x.set({Slice{2, 5}}, -1);
  EXPECT_EQ(x.schedule().size(), 1U);
  EXPECT_EQ(x.kernel_count(), 1U);
  x.set({0}, 7);
  EXPECT_EQ(x.schedule().size(), x.kernel_count());
  EXPECT_EQ(x.data<float>(), (test::Floats{7, 1, -1, -1, -1, 5, 6, 7}));
}

// Memory that nobody wrote, more than there is.
TEST(TensorSchedule, allocates_nothing) {
  Tensor x = Tensor::empty({int64_t(1) << 60});
  const Tensor y = x + 1;
  EXPECT_EQ(y.kernel_count(), 1U);
  x.set({5}, 1);
  EXPECT_EQ(x.schedule().size(), 1U);
  EXPECT_FALSE(x.is_realized());
}

}  // namespace
}  // namespace weft
