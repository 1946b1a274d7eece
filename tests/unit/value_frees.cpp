// Values are freed one by one however they hang together, and what is realised lets go of the rest.
#include <cstdint>

#include <gtest/gtest.h>

#include "base/config.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "tests/unit/tensor_helpers.h"
#include "value/storage.h"
#include "value/value.h"
#include "weft/counters.h"
#include "weft/small_vector.h"
#include "weft/tensor.h"

namespace weft {
namespace {

constexpr int64_t kLong = 1'000'000;

TEST(ValueFrees, HugeChainOfOperations) {
  const int64_t before = pending_values();
  {
    Tensor x = test::counted({2});
    for (int64_t i = 0; i < kLong; i++) x = x + 1;
    EXPECT_EQ(pending_values(), before + 2 * kLong);
  }
  EXPECT_EQ(pending_values(), before);
}

TEST(ValueFrees, HugeChainOfWrites) {
  const int64_t before = pending_values();
  {
    Tensor a = Tensor::empty({kLong});
    for (int64_t i = 0; i < kLong; i++) a.set({i}, i);
  }
  EXPECT_EQ(pending_values(), before);
}

TEST(ValueFrees, HugeChainOfUpdates) {
  const int64_t before = pending_values();
  {
    Tensor a = Tensor::zeros({4});
    for (int64_t i = 0; i < kLong / 4; i++) a.at({0}).update(Op::ADD, 1);
  }
  EXPECT_EQ(pending_values(), before);
}

TEST(ValueFrees, realised_values_hold_nothing) {
  const int64_t before = pending_values();
  Tensor x = test::counted({2});
  for (int i = 0; i < 100; i++) x = x + 1;
  x.realize();
  EXPECT_EQ(pending_values(), before);
  EXPECT_TRUE(x.storage()->version()->sources().empty());
  EXPECT_EQ(x.data<float>(), (test::Floats{100, 101}));
}

TEST(ValueFrees, a_value_and_its_storage_are_small) {
  EXPECT_LE(sizeof(Value), 96U);
  EXPECT_LE(sizeof(Value) + sizeof(Storage) + sizeof(Tensor), 320U);
}

// What only pending values read is pinned; what tensors hold is not.
TEST(ValueFrees, pinned_bytes) {
  const int64_t before = pinned_bytes();
  {
    Tensor x = test::counted({100}), y = x + 1;
    EXPECT_EQ(pinned_bytes(), before);
    x = y;
    EXPECT_EQ(pinned_bytes(), before + 400);
    y.realize();
    EXPECT_EQ(pinned_bytes(), before);
    y.set({0}, 1);
    EXPECT_EQ(pinned_bytes(), before + 400);
    const Tensor z = y * 2;
    y.realize();
    EXPECT_EQ(pinned_bytes(), before);
    y.assign(0);
    EXPECT_EQ(pinned_bytes(), before + 400);
    EXPECT_EQ(z.sum().item<float>(), (50 * 101 - 1 + 1) * 2);
  }
  EXPECT_EQ(pinned_bytes(), before);
}

TEST(ValueFrees, past_the_bound_on_bytes_results_are_realised) {
  constexpr int64_t bytes = 400, most = 10 * bytes;
  const test::Setting bound(config().most_pinned_bytes, pinned_bytes() + most);
  const uint64_t kernels = counters().kernels;
  Tensor sum = Tensor::zeros({100}), written = test::counted({100});
  for (int i = 0; i < 200; i++) {
    sum = sum + test::counted({100});
    written.at({Slice{.step = 2}}).update(Op::ADD, test::counted({50}));
    EXPECT_LE(pinned_bytes(), config().most_pinned_bytes + 2 * bytes);
  }
  EXPECT_LE(counters().kernels, kernels + 100);
  EXPECT_EQ(sum.at({99}).item<float>(), 99 * 200);
  EXPECT_EQ(written.at({98}).item<float>(), 98 + 49 * 200);
  EXPECT_EQ(written.at({99}).item<float>(), 99);
}

TEST(ValueFrees, of_no_elements_whose_source_goes) {
  const Tensor x = (Tensor::zeros({0, 3, 5, 7, 9, 11, 13}) + 1).cast(dtypes::int32);
  EXPECT_EQ(Sizes(x.shape()), (Sizes{0, 3, 5, 7, 9, 11, 13}));
  EXPECT_TRUE(x.data<int32_t>().empty());
}

TEST(ValueFrees, past_the_bound_results_are_realised) {
  const test::Setting bound(config().most_pending_values, pending_values() + 50);
  Tensor x = test::counted({2});
  for (int i = 0; i < 200; i++) {
    x = x + 1;
    EXPECT_LE(pending_values(), config().most_pending_values);
  }
  Tensor a = Tensor::zeros({500});
  for (int64_t i = 0; i < 200; i++) a.set({i}, i);
  EXPECT_LE(pending_values(), config().most_pending_values);
  EXPECT_EQ(x.data<float>(), (test::Floats{200, 201}));
  EXPECT_EQ(a.sum().item<float>(), 199 * 100);
}

}  // namespace
}  // namespace weft
