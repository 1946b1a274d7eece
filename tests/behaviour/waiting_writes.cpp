// Writes that nobody looks at are done after a number of realises: what a program keeps up to date
// does not grow.
#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "tests/unit/tensor_helpers.h"
#include "value/value.h"
#include "weft/weft.h"

namespace weft {
namespace {

constexpr int kMany = 200;

// The most pending Values after the first few of many steps.
template <class Step>
int64_t most_pending(Step&& step) {
  int64_t most = 0;
  const int64_t before = pending_values();
  for (int i = 0; i < kMany; i++) {
    step(i);
    most = std::max(most, pending_values() - before);
  }
  return most;
}

TEST(WaitingWrites, of_what_a_realise_computes_beside_them) {
  Tensor running = zeros({3}).realize();
  const int64_t most = most_pending([&](int i) {
    const Tensor x = test::counted({4, 3}) + float(i);
    const Tensor mean = x.mean({{0}});
    running.assign(running * 0.5F + mean * 0.5F);
    (x - mean).realize();
  });
  EXPECT_LE(most, 200);
  float expected = 0;
  for (int i = 0; i < kMany; i++) expected = expected * 0.5F + (4.5F + float(i)) * 0.5F;
  EXPECT_FLOAT_EQ(running.data<float>()[0], expected);
}

TEST(WaitingWrites, of_what_no_realise_is_about) {
  Tensor count = zeros({}, dtypes::int64).realize(), cells = zeros({4}).realize();
  const int64_t most = most_pending([&](int i) {
    count.assign(count + 1);
    cells.set({i % 4}, float(i));
    (test::counted({4}) * float(i)).realize();
  });
  EXPECT_LE(most, 200);
  EXPECT_EQ(count.item<int64_t>(), kMany);
  EXPECT_EQ(cells.data<float>(), (test::Floats{196, 197, 198, 199}));
}

// What is realised in time is no concern of others: each realise runs its own kernels.
TEST(WaitingWrites, are_left_alone_while_they_are_young) {
  Tensor x = test::counted({4});
  x.realize();
  for (int i = 0; i < kMany; i++) {
    x.assign(x + 1);
    Tensor y = test::counted({2}) + float(i);
    reset_counters();
    y.realize();
    EXPECT_EQ(counters().kernels, 1U);
    EXPECT_FALSE(x.is_realized());
    x.realize();
  }
}

TEST(WaitingWrites, that_fail_tell_their_reader) {
  Tensor x = test::counted({4});
  x.realize();
  const Tensor index = test::counted({2}).cast(dtypes::int32) * 9;
  x.assign(x + x.at({index}).sum());
  for (int i = 0; i < kMany; i++) {
    const Tensor y = test::counted({2}) + float(i);
    EXPECT_EQ(y.data<float>(), (test::Floats{float(i), float(i) + 1}));
  }
  EXPECT_THROW(x.data<float>(), IndexError);
}

// A Storage that dies while it waits is forgotten.
TEST(WaitingWrites, of_tensors_that_are_gone) {
  for (int i = 0; i < kMany; i++) {
    Tensor x = test::counted({4});
    x.realize();
    x.assign(x + 1);
    (x * 2).realize();
  }
}

}  // namespace
}  // namespace weft
