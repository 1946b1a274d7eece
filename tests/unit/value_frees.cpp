// Values are freed one by one however they hang together, and what is realised lets go of the rest.
#include <cstdint>

#include <gtest/gtest.h>

#include "base/config.h"
#include "base/ref.h"
#include "ir/op.h"
#include "tests/unit/tensor_helpers.h"
#include "value/storage.h"
#include "value/value.h"
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
