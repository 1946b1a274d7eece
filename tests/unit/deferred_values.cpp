// Functions of many operations are one step until they are computed, and give what they would have
// given at once.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tensor_helpers.h"
#include "value/deferred.h"
#include "value/storage.h"
#include "value/value.h"
#include "weft/error.h"
#include "weft/gradient.h"
#include "weft/jit.h"
#include "weft/tensor.h"

namespace weft {
namespace {

using test::counted;
using test::floats;
using test::Floats;

TEST(DeferredValues, wait_until_they_are_computed) {
  const Tensor x = floats({0.5F, -1, 2});
  const int64_t waiting = waiting_values(), pending = pending_values();
  const Tensor y = x.tanh();
  EXPECT_EQ(waiting_values(), waiting + 1);
  EXPECT_GT(pending_values(), pending + 16);  // it counts as what it will be
  const Floats values = y.data<float>();
  for (size_t i = 0; i < 3; i++) {
    EXPECT_FLOAT_EQ(values[i], std::tanh(x.data<float>()[i]));
  }
  EXPECT_EQ(waiting_values(), waiting);
  EXPECT_EQ(pending_values(), pending);
}

TEST(DeferredValues, are_freed_without_being_computed) {
  const int64_t waiting = waiting_values(), pending = pending_values();
  {
    Tensor x = counted({4}).realize();
    for (int i = 0; i < 1000; i++) x = x.erf();
    EXPECT_EQ(waiting_values(), waiting + 1000);
  }
  EXPECT_EQ(waiting_values(), waiting);
  EXPECT_EQ(pending_values(), pending);
}

TEST(DeferredValues, read_what_was_there) {
  Tensor x = floats({1, 2}).realize();
  const Tensor y = x.sigmoid();
  x.assign(floats({7, 8}));
  EXPECT_FLOAT_EQ(y.data<float>()[0], 1 / (1 + std::exp(-1.0F)));
  EXPECT_EQ(x.data<float>(), (Floats{7, 8}));
}

TEST(DeferredValues, stand_on_each_other) {
  const Tensor x = floats({3, 1, 2}).realize();
  const auto [values, places] = x.tanh().sort(0, true);
  EXPECT_EQ(places.data<int32_t>(), (std::vector<int32_t>{0, 2, 1}));
  EXPECT_FLOAT_EQ(values.data<float>()[2], std::tanh(1.0F));
}

// Nobody needs a gradient of x in advance: it is asked for by the tensor.
TEST(DeferredValues, have_gradients_by_what_they_are_of) {
  const Tensor x = floats({0.5F, -1}), targets[] = {x};
  const Tensor by = x.mul(2.0).tanh().sum().gradient(targets)[0];
  for (size_t i = 0; i < 2; i++) {
    const float t = std::tanh(2 * x.data<float>()[i]);
    EXPECT_NEAR(by.data<float>()[i], 2 * (1 - t * t), 1e-6);
  }
}

TEST(DeferredValues, are_written_out_at_once_where_a_gradient_passes) {
  const int64_t waiting = waiting_values();
  Tensor x = floats({0.5F, -1});
  x.set_requires_grad();
  const Tensor y = x.tanh();
  EXPECT_EQ(waiting_values(), waiting);
  const NoGrad off;
  const Tensor z = x.tanh();
  EXPECT_EQ(waiting_values(), waiting + 1);
  EXPECT_EQ(y.data<float>(), z.data<float>());
}

TEST(DeferredValues, are_as_many_kernels_as_when_written_out) {
  Tensor x = counted({100}).realize(), leaf = x.clone();
  leaf.set_requires_grad();
  EXPECT_EQ(x.gelu().kernel_count(), 1U);
  EXPECT_EQ(x.sort().first.kernel_count(), leaf.sort().first.kernel_count());
  EXPECT_EQ(Tensor::randn({100}).kernel_count(), 1U);
}

TEST(DeferredValues, are_captured) {
  Jit f = jit([](std::span<const Tensor> in) {
    return std::vector<Tensor>{in[0].tanh().argsort(), Tensor::rand({2})};
  });
  Floats before;
  for (int i = 0; i < 4; i++) {
    const float last = float(i % 2) * 5;
    const std::vector<Tensor> out = f({floats({1, 3, last})});
    EXPECT_EQ(out[0].data<int32_t>(),
              i % 2 == 0 ? (std::vector<int32_t>{2, 0, 1}) : (std::vector<int32_t>{0, 1, 2}));
    EXPECT_NE(out[1].data<float>(), before);
    before = out[1].data<float>();
  }
}

// An index that is computed: out of range it fails what was computed with it.
TEST(DeferredValues, check_indices) {
  const Tensor x = floats({1, 2, 3}).realize();
  const Tensor i = test::counted({2}).cast(dtypes::int32);
  EXPECT_EQ(x.take(i.add(int64_t(1))).data<float>(), (Floats{2, 3}));
  EXPECT_THROW(x.take(i.add(int64_t(2))).realize(), IndexError);
  EXPECT_THROW(x.reshape({3, 1}).gather(0, i.add(int64_t(2)).reshape({2, 1})).realize(),
               IndexError);
}

}  // namespace
}  // namespace weft
