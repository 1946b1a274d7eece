// What each operation of tensors gives, on small examples worked out by hand.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "ir/dtype.h"
#include "ir/op.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/weft.h"

namespace weft {
namespace {

using test::counted;
using test::floats;
using test::Floats;
using Whole = std::vector<int64_t>;

TEST(TensorOps, creation) {
  EXPECT_EQ(Tensor::full({2, 2}, 1.5).data<float>(), (Floats{1.5, 1.5, 1.5, 1.5}));
  EXPECT_EQ(Tensor::full({}, true).dtype(), dtypes::bool_);
  EXPECT_EQ(Tensor::arange(4).data<int64_t>(), (Whole{0, 1, 2, 3}));
  EXPECT_EQ(Tensor::arange(4).dtype(), dtypes::int32);
  EXPECT_EQ(Tensor::arange(5, 0, -2).data<int64_t>(), (Whole{5, 3, 1}));
  EXPECT_EQ(Tensor::arange(0, 1, 0.25).data<float>(), (Floats{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(Tensor::arange(3, 3).numel(), 0);
  EXPECT_EQ(Tensor::arange(1, 1.25, 0.1).data<float>(), (Floats{1, 1.1F, 1.2F}));
  EXPECT_EQ(Tensor::from<int16_t>({-1, 2}).data<int64_t>(), (Whole{-1, 2}));
}

TEST(TensorOps, elementwise_broadcasts) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ((x + floats({10, 20, 30})).data<float>(), (Floats{10, 21, 32, 13, 24, 35}));
  EXPECT_EQ((x.at({Slice{}, NewAxis{}, 0}) * x.at({0})).shape().size(), 2U);
  EXPECT_EQ((1 - x).data<float>(), (Floats{1, 0, -1, -2, -3, -4}));
  EXPECT_EQ((x + x.sum()).data<float>(), (Floats{15, 16, 17, 18, 19, 20}));
  EXPECT_EQ(x.binary(Op::CMPLT, 2).data<bool>(),
            (std::vector<bool>{true, true, false, false, false, false}));
  EXPECT_EQ(Tensor::where(x.binary(Op::CMPLT, 2), x, -1).data<float>(),
            (Floats{0, 1, -1, -1, -1, -1}));
}

TEST(TensorOps, division) {
  const Tensor i = Tensor::from<int32_t>({-7, 7});
  EXPECT_EQ((i / 2).data<float>(), (Floats{-3.5, 3.5}));
  EXPECT_EQ(i.binary(Op::IDIV, 2).data<int64_t>(), (Whole{-4, 3}));
  EXPECT_EQ(i.binary(Op::MOD, 4).data<int64_t>(), (Whole{1, 3}));
  EXPECT_EQ(floats({-7, 7}).binary(Op::IDIV, 2).data<float>(), (Floats{-4, 3}));
  EXPECT_EQ(floats({-7, 7}).binary(Op::MOD, 4).data<float>(), (Floats{1, 3}));
}

TEST(TensorOps, dtypes_meet) {
  const auto meet = [](DType a, DType b) {
    return (Tensor::zeros({1}, a) + Tensor::zeros({1}, b)).dtype();
  };
  EXPECT_EQ(meet(dtypes::bool_, dtypes::int8), dtypes::int8);
  EXPECT_EQ(meet(dtypes::uint8, dtypes::int8), dtypes::int16);
  EXPECT_EQ(meet(dtypes::uint8, dtypes::int32), dtypes::int32);
  EXPECT_EQ(meet(dtypes::uint32, dtypes::int32), dtypes::int64);
  EXPECT_EQ(meet(dtypes::int64, dtypes::float16), dtypes::float16);
  EXPECT_EQ(meet(dtypes::float16, dtypes::bfloat16), dtypes::float32);
  EXPECT_EQ(meet(dtypes::float8_e4m3, dtypes::float8_e5m2), dtypes::float16);
  EXPECT_EQ((Tensor::zeros({1}, dtypes::int8) + 100).dtype(), dtypes::int8);
  EXPECT_EQ((Tensor::zeros({1}, dtypes::int8) + 1.5).dtype(), dtypes::float32);
  EXPECT_EQ((Tensor::zeros({1}, dtypes::float16) + 1.5).dtype(), dtypes::float16);
  EXPECT_EQ((Tensor::zeros({1}, dtypes::bool_) + 1).dtype(), dtypes::int32);
  EXPECT_EQ((Tensor::zeros({1}, dtypes::bool_) + true).dtype(), dtypes::bool_);
  EXPECT_EQ(Tensor::zeros({1}, dtypes::int8).sum().dtype(), dtypes::int32);
  EXPECT_EQ(Tensor::zeros({1}, dtypes::uint8).prod().dtype(), dtypes::uint32);
  EXPECT_EQ(Tensor::zeros({1}, dtypes::bool_).sum().dtype(), dtypes::int32);
  EXPECT_EQ(Tensor::zeros({1}, dtypes::int64).mean().dtype(), dtypes::float32);
  EXPECT_EQ(Tensor::zeros({1}, dtypes::int8).max().dtype(), dtypes::int8);
  EXPECT_EQ(Tensor::zeros({1}, dtypes::int8).unary(Op::SQRT).dtype(), dtypes::float32);
}

TEST(TensorOps, reductions) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(x.sum({{0}}).data<float>(), (Floats{3, 5, 7}));
  EXPECT_EQ(x.sum({{-1}}, true).data<float>(), (Floats{3, 12}));
  EXPECT_EQ(x.sum({{-1}}, true).ndim(), 2);
  EXPECT_EQ(x.mean().item<float>(), 2.5F);
  EXPECT_EQ(x.max({{1}}).data<float>(), (Floats{2, 5}));
  EXPECT_EQ(x.min().item<int>(), 0);
  EXPECT_EQ(x.sum(std::vector<int64_t>{}).data<float>(), x.data<float>());
  EXPECT_EQ(Tensor::ones({5}, dtypes::bool_).sum().item<int>(), 5);
}

TEST(TensorOps, matmul_of_any_rank) {
  const Tensor m = counted({2, 3}), v = floats({1, 2, 3});
  EXPECT_EQ(m.matmul(v).data<float>(), (Floats{8, 26}));
  EXPECT_EQ(v.matmul(m.transpose()).data<float>(), (Floats{8, 26}));
  EXPECT_EQ(v.matmul(v).item<float>(), 14);
  EXPECT_EQ(v.matmul(v).ndim(), 0);
  EXPECT_EQ(m.matmul(m.transpose()).data<float>(), (Floats{5, 14, 14, 50}));
  const Tensor batch = counted({2, 1, 2, 3}).matmul(counted({4, 3, 2}));
  EXPECT_EQ(Sizes(batch.shape()), (Sizes{2, 4, 2, 2}));
  const Tensor alone = counted({2, 1, 2, 3}).at({1, 0}).matmul(counted({4, 3, 2}).at({2}));
  EXPECT_EQ(batch.at({1, 2}).data<float>(), alone.data<float>());
}

TEST(TensorOps, views_share_memory) {
  Tensor x = counted({2, 3});
  for (const Tensor& view :
       {x.reshape({3, 2}), x.permute({1, 0}), x.flip({0}), x.expand({4, 2, 3}), x.at({1}),
        x.unfold(1, 2, 1), x.diagonal(), x.as_strided({2}, {3}, 1), x.squeeze(), x.unsqueeze(0),
        x.shrink({{0, 1}, {1, 2}}), x.bitcast(dtypes::int32), x.detach()}) {
    EXPECT_TRUE(view.shares_memory_with(x));
  }
  EXPECT_FALSE(x.permute({1, 0}).reshape({6}).shares_memory_with(x));
  EXPECT_EQ(x.permute({1, 0}).reshape({6}).data<float>(), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x.unfold(1, 2, 1).data<float>(), (Floats{0, 1, 1, 2, 3, 4, 4, 5}));
  EXPECT_EQ(x.diagonal(1).data<float>(), (Floats{1, 5}));
  EXPECT_EQ(x.diagonal(-1).data<float>(), (Floats{3}));
  EXPECT_EQ(x.flip({0, 1}).data<float>(), (Floats{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(x.at({Slice{.step = -1}, Slice{.start = 1}}).data<float>(), (Floats{4, 5, 1, 2}));
  EXPECT_EQ(x.at({Ellipsis{}, -1}).data<float>(), (Floats{2, 5}));
  EXPECT_EQ(x.at({Slice{5, 1}}).numel(), 0);
  EXPECT_EQ(x.bitcast(dtypes::int32).at({0, 1}).item<int>(), 0x3f800000);
}

TEST(TensorOps, writes_through_views) {
  Tensor x = counted({2, 3});
  x.diagonal().assign(9);
  x.at({Slice{}, 2}).assign(floats({7, 8}));
  EXPECT_EQ(x.data<float>(), (Floats{9, 1, 7, 3, 9, 8}));
  x.at({0}).expand({5, 3}).assign(1);
  EXPECT_EQ(x.data<float>(), (Floats{1, 1, 1, 3, 9, 8}));
  x.bitcast(dtypes::int32).set({0, 0}, 0x40000000);
  EXPECT_EQ(x.at({0, 0}).item<float>(), 2);
  x.flip({0, 1}).assign(counted({2, 3}));
  EXPECT_EQ(x.data<float>(), (Floats{5, 4, 3, 2, 1, 0}));
  x.assign(floats({1, 2, 3}));
  EXPECT_EQ(x.data<float>(), (Floats{1, 2, 3, 1, 2, 3}));
  x.update(Op::MUL, x.at({0}));
  EXPECT_EQ(x.data<float>(), (Floats{1, 4, 9, 1, 4, 9}));
  Tensor whole = Tensor::from<int32_t>({1, 2});
  whole.update(Op::MUL, 1.5);
  EXPECT_EQ(whole.data<int64_t>(), (Whole{1, 3}));
}

TEST(TensorOps, pad_cat_roll) {
  const Tensor x = counted({2, 2});
  EXPECT_EQ(x.pad({{0, 1}, {1, 0}}).data<float>(), (Floats{0, 0, 1, 0, 2, 3, 0, 0, 0}));
  EXPECT_EQ(x.pad({{1, -1}, {0, 0}}, 7).data<float>(), (Floats{7, 7, 0, 1}));
  EXPECT_EQ(Tensor::cat({x, x + 4}, 1).data<float>(), (Floats{0, 1, 4, 5, 2, 3, 6, 7}));
  const std::vector<Tensor> many(10, floats({1, 2}));
  EXPECT_EQ(Tensor::cat(many).sum().item<float>(), 30);
  EXPECT_EQ(x.roll({1}).data<float>(), (Floats{3, 0, 1, 2}));
  EXPECT_EQ(x.roll({1}, {{1}}).data<float>(), (Floats{1, 0, 3, 2}));
  EXPECT_EQ(x.roll({1, -3}, {{0, 1}}).data<float>(), (Floats{3, 2, 1, 0}));
}

TEST(TensorOps, on_no_device) {
  Tensor x = Tensor::ones({3}, dtypes::float32, "NULL");
  const uint64_t kernels = counters().kernels;
  EXPECT_EQ((x + 1).data<float>(), (Floats{0, 0, 0}));
  EXPECT_GT(counters().kernels, kernels);
}

}  // namespace
}  // namespace weft
