// Functions, reductions, sorting and losses by the C++ interface.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "weft/tensor.h"

namespace weft {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Maths, OperandsAreTensorsOrNumbers) {
  const Tensor x = Tensor::from<float>({-2, 0.5F, 9});
  EXPECT_EQ(x.maximum(1).data<float>(), (std::vector<float>{1, 1, 9}));
  EXPECT_EQ(x.clamp(0.0, x.abs()).data<float>(), (std::vector<float>{0, 0.5F, 9}));
  EXPECT_EQ(x.pow(2).data<float>(), (std::vector<float>{4, 0.25F, 81}));
  EXPECT_EQ(x.le(x).data<bool>(), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(Tensor::from<int32_t>({7, -7}).div(2, Rounding::kTowardZero).data<int32_t>(),
            (std::vector<int32_t>{3, -3}));
  EXPECT_EQ(Tensor::from<int32_t>({7, -7}).fmod(3).data<int32_t>(), (std::vector<int32_t>{1, -1}));
}

TEST(Maths, FunctionsOfReals) {
  const Tensor x = Tensor::from<float>({0.25F});
  EXPECT_FLOAT_EQ(x.tanh().item<float>(), std::tanh(0.25F));
  EXPECT_FLOAT_EQ(x.erf().item<float>(), std::erf(0.25F));
  EXPECT_FLOAT_EQ(x.atan2(-1.0).item<float>(), std::atan2(0.25F, -1.0F));
  EXPECT_FLOAT_EQ(Tensor::from<int32_t>({2}).sigmoid().item<float>(), 1 / (1 + std::exp(-2.0F)));
}

TEST(Maths, PlacesAndSpread) {
  const Tensor x = Tensor::from<float>({3, kNaN, 1, 3});
  EXPECT_EQ(x.argmax().item<int>(), 1);
  EXPECT_TRUE(std::isnan(x.max().item<float>()));
  const auto [variance, mean] = Tensor::from<float>({1, 2, 3}).var_mean();
  EXPECT_EQ(variance.item<float>(), 1);
  EXPECT_EQ(mean.item<float>(), 2);
}

TEST(Maths, CumulativeOnesAndSorting) {
  const Tensor x = Tensor::from<int32_t>({3, 1, 2, 3});
  EXPECT_EQ(x.cumsum().data<int32_t>(), (std::vector<int32_t>{3, 4, 6, 9}));
  EXPECT_EQ(x.cummax().second.data<int32_t>(), (std::vector<int32_t>{0, 0, 0, 3}));
  const auto [values, places] = x.sort(-1, true);
  EXPECT_EQ(values.data<int32_t>(), (std::vector<int32_t>{3, 3, 2, 1}));
  EXPECT_EQ(places.data<int32_t>(), (std::vector<int32_t>{0, 3, 2, 1}));
  const Tensor many = Tensor::arange(int64_t(0), int64_t(1000)).mul(int64_t(7919));
  EXPECT_EQ(many.mod(1009).argsort().argsort().data<int32_t>(),
            many.mod(1009).argsort().argsort().argsort().argsort().data<int32_t>());
}

TEST(Maths, LongAxesTakeFewKernels) {
  EXPECT_LE(Tensor::ones({1 << 20}).realize().cumsum().kernel_count(), 12U);
  EXPECT_LE(Tensor::ones({1024}).realize().argsort().kernel_count(), 40U);
}

TEST(Maths, Losses) {
  const Tensor logits = Tensor::from<float>({2, 2}).reshape({1, 2});
  EXPECT_FLOAT_EQ(logits.cross_entropy(Tensor::from<int32_t>({1})).item<float>(), std::log(2.0F));
  EXPECT_EQ(logits.cross_entropy(Tensor::from<int32_t>({1}), Reduction::kNone).ndim(), 1);
}

}  // namespace
}  // namespace weft
