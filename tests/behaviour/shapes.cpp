// Arrangements, products, windows and moves between devices through the C++ interface.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tensor_helpers.h"
#include "weft/weft.h"

namespace weft {
namespace {

using test::counted;
using test::floats;
using test::Floats;
using test::thrown;
using Whole = std::vector<int64_t>;

TEST(Shapes, parts_are_views) {
  Tensor x = counted({2, 4});
  const std::vector<Tensor> parts = x.split({1, 3}, 1);
  x.set({0, 1}, 9.0);
  EXPECT_EQ(parts[1].data<float>(), (Floats{9, 2, 3, 5, 6, 7}));
  EXPECT_EQ(x.chunk(3, 1).size(), 2U);
  EXPECT_EQ(Tensor::stack({x, x}, -1).numel(), 16);
}

TEST(Shapes, formulas) {
  const Tensor x = counted({2, 4});
  const std::pair<std::string, int64_t> sizes[] = {{"h", 2}};
  EXPECT_EQ(x.rearrange("b (h w) -> w (b h)", sizes).data<float>(),
            (Floats{0, 2, 4, 6, 1, 3, 5, 7}));
  const Tensor operands[] = {x, x};
  EXPECT_EQ(Tensor::einsum("ij,kj->ik", operands).data<float>(), (Floats{14, 38, 38, 126}));
}

TEST(Shapes, creation) {
  EXPECT_EQ(Tensor::eye(2).data<float>(), (Floats{1, 0, 0, 1}));
  EXPECT_EQ(Tensor::linspace(0, 1, 3).data<float>(), (Floats{0, 0.5, 1}));
  EXPECT_EQ(counted({2, 2}).tril(-1).data<float>(), (Floats{0, 0, 2, 0}));
  EXPECT_EQ(floats({1, 2}).diag(1).shape().size(), 2U);
}

TEST(Shapes, padding) {
  const Tensor x = floats({1, 2, 3});
  const std::pair<int64_t, int64_t> around[] = {{2, 1}};
  EXPECT_EQ(x.pad(around, Tensor::PadMode::kReflect).data<float>(), (Floats{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(x.pad(around, Tensor::PadMode::kReplicate).data<float>(), (Floats{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(x.pad(around, Tensor::PadMode::kCircular).data<float>(), (Floats{2, 3, 1, 2, 3, 1}));
}

TEST(Shapes, windows) {
  const Tensor x = counted({1, 1, 4, 4});
  EXPECT_EQ(x.max_pool2d().data<float>(), (Floats{5, 7, 13, 15}));
  EXPECT_EQ(x.avg_pool2d({.kernel_size = {3, 3}, .stride = {1}}).data<float>(),
            (Floats{5, 6, 9, 10}));
  const Tensor y = x.conv2d(Tensor::ones({1, 1, 2, 2}), floats({1}), {.stride = {2}});
  EXPECT_EQ(y.data<float>(), (Floats{11, 19, 43, 51}));
  EXPECT_EQ(y.conv_transpose2d(Tensor::ones({1, 1, 2, 2}), {}, {.stride = {2}}).numel(), 16);
}

TEST(Shapes, attention) {
  const Tensor q = Tensor::zeros({2, 4}), v = floats({1, 3}).reshape({2, 1});
  EXPECT_EQ(q.scaled_dot_product_attention(q, v, {.is_causal = true}).data<float>(),
            (Floats{1, 2}));
}

TEST(Shapes, decompositions) {
  const Tensor x = floats({3, 0, 0, -5}).reshape({2, 2});
  const auto [q, r] = x.qr();
  EXPECT_NEAR((q.matmul(r) - x).mul(q.matmul(r) - x).sum().item<float>(), 0, 1e-10);
  const Tensor::Svd parts = x.svd();
  EXPECT_NEAR(parts.s.at({0}).item<float>(), 5, 1e-5);
}

TEST(Shapes, random) {
  Tensor::manual_seed(11);
  const Floats first = Tensor::rand({4}).data<float>();
  const Tensor state = Tensor::get_rng_state();
  const Floats second = Tensor::rand({4}).data<float>();
  Tensor::set_rng_state(state);
  EXPECT_EQ(Tensor::rand({4}).data<float>(), second);
  Tensor::manual_seed(11);
  EXPECT_EQ(Tensor::rand({4}, dtypes::float32, "CPU:C").data<float>(), first);
  EXPECT_NE(first, second);
}

TEST(Shapes, random_in_jit) {
  auto draw =
      jit([](std::span<const Tensor> x) { return std::vector<Tensor>{x[0] + Tensor::rand({3})}; });
  Tensor::manual_seed(5);
  std::vector<Floats> expected, found;
  for (int i = 0; i < 5; i++) expected.push_back(Tensor::rand({3}).data<float>());
  Tensor::manual_seed(5);
  for (int i = 0; i < 5; i++) {
    const Tensor zeros[] = {Tensor::zeros({3})};
    found.push_back(draw(zeros)[0].data<float>());
  }
  EXPECT_EQ(found, expected);
}

TEST(Shapes, moves_between_devices) {
  const Tensor x = Tensor::full({2}, 1.0, dtypes::float32, "REF") + 1.0;
  const Tensor y = x.to("CPU:C") * 2.0;
  EXPECT_EQ(y.device(), "CPU:C");
  EXPECT_EQ(y.kernel_count(), 2U);
  EXPECT_EQ(y.to("REF").data<float>(), (Floats{4, 4}));
  EXPECT_NE(thrown<DeviceError>([&] { x + y; }), "");
}

}  // namespace
}  // namespace weft
