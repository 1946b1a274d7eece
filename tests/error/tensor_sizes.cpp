// Sizes at the ends of what can be counted: lazy where nothing is needed, refused where it cannot
// be said, never wrapped.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/op.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft {
namespace {

constexpr int64_t kHuge = int64_t(1) << 40, kMost = (int64_t(1) << 62) - 1;
constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();
constexpr int64_t kInt64Min = std::numeric_limits<int64_t>::min();

TEST(TensorSizes, huge_ones_are_lazy) {
  const Tensor x = Tensor::empty({kHuge}), most = Tensor::zeros({kMost}, dtypes::int8);
  EXPECT_EQ((x + 1).numel(), kHuge);
  EXPECT_EQ(most.numel(), kMost);
  EXPECT_EQ(x.at({Slice{.start = kHuge - 3}}).numel(), 3);
  // A copy of a part needs no more than the part.
  EXPECT_EQ(most.at({kMost - 1}).clone().item<int>(), 0);
  const Tensor even = (Tensor::arange(0, kHuge, 1, dtypes::int64) * 2).at({kHuge - 1}).clone();
  EXPECT_EQ(even.item<int64_t>(), 2 * kHuge - 2);
  Tensor written = Tensor::zeros({kHuge});
  written.set({kHuge - 2}, 5);
  EXPECT_EQ(written.at({kHuge - 2}).clone().item<float>(), 5);
  EXPECT_EQ(written.at({kHuge - 3}).clone().item<float>(), 0);
  EXPECT_EQ(Tensor::ones({3}).expand({kHuge, 3}).at({kHuge - 1}).sum().item<float>(), 3);
}

TEST(TensorSizes, that_cannot_be_counted) {
  const Tensor row = Tensor::empty({1, kHuge}), column = Tensor::empty({kHuge, 1});
  const Tensor most = Tensor::empty({kMost});
  const std::vector<std::function<void()>> refused = {
      [] { Tensor::empty({kMost + 1}); },
      [] { Tensor::empty({kHuge, kHuge, 0}); },
      [] { Tensor::full({kInt64Max, 2}, 1); },
      [&] { row.add(column); },
      [&] { Tensor::where(row.binary(Op::CMPLT, 1), column, 1); },
      [&] { column.matmul(row); },
      [&] { Tensor::cat({most, most, most}); },
      [&] { most.pad({{1, 0}}); },
      [&] { most.pad({{kInt64Max, kInt64Max}}); },
      [&] { Tensor::empty({2}).pad({{kInt64Min, kInt64Min}}); },
      [&] { row.expand({kHuge, kHuge}); },
      [&] { most.reshape({kInt64Max, kInt64Max, -1}); },
      [&] { Tensor::empty({kHuge}).unfold(0, kHuge / 2, 1); },
      [] { Tensor::arange(0, kInt64Max, 1, dtypes::int64); },
      [] { Tensor::arange(0.0, 1e300); },
      [] { Tensor::empty({2}).as_strided({kHuge, kHuge}, {0, 0}); },
  };
  for (size_t i = 0; i < refused.size(); i++) EXPECT_THROW(refused[i](), ShapeError) << i;
}

TEST(TensorSizes, without_memory_for_them) {
  for (const int64_t size : {kHuge << 10, int64_t(1) << 61, kMost}) {
    Tensor x = Tensor::empty({size}, dtypes::float64);
    EXPECT_THROW(x.realize(), DeviceError) << size;
    EXPECT_THROW((x + 1).realize(), DeviceError) << size;
    EXPECT_THROW(Tensor::zeros({size}, dtypes::int64).bytes(), DeviceError) << size;
    EXPECT_THROW(Tensor::from_bytes({}, {size}, dtypes::int64), Error) << size;
    EXPECT_FALSE(x.is_realized());
  }
  const Tensor small = test::counted({1});
  EXPECT_THROW(small.expand({int64_t(1) << 61}).cast(dtypes::float64).bytes(), DeviceError);
  EXPECT_THROW(Tensor::zeros({1}, dtypes::float64).realize().expand({int64_t(1) << 61}).bytes(),
               DeviceError);
}

TEST(TensorSizes, numbers_at_the_ends_of_int64) {
  const Tensor x = test::counted({3, 4});
  EXPECT_EQ(x.diagonal(kInt64Min).numel(), 0);
  EXPECT_EQ(x.diagonal(kInt64Max).numel(), 0);
  EXPECT_EQ(x.at({Slice{kInt64Min, kInt64Max, kInt64Max}}).data<float>(),
            (test::Floats{0, 1, 2, 3}));
  EXPECT_EQ(x.at({0, Slice{kInt64Max, kInt64Min, kInt64Min}}).item<float>(), 3);
  EXPECT_EQ(x.unfold(1, 4, kInt64Max).data<float>(), x.data<float>());
  EXPECT_EQ(x.as_strided({1}, {kInt64Min}, 5).flip({0}).item<float>(), 5);
  EXPECT_EQ(x.as_strided({0, 2}, {kInt64Max, kInt64Min}, kInt64Min).flip({1}).numel(), 0);
  EXPECT_EQ(x.roll({kInt64Min}, {{1}}).at({0, 0}).item<float>(), 0);
  EXPECT_THROW(x.at({kInt64Min}), IndexError);
  EXPECT_THROW(x.as_strided({2}, {kInt64Max}, 5), ShapeError);
  EXPECT_EQ(Tensor::arange(kInt64Max - 2, kInt64Max, 1, dtypes::int64).data<int64_t>(),
            (std::vector<int64_t>{kInt64Max - 2, kInt64Max - 1}));
  EXPECT_EQ(Tensor::arange(kInt64Min, kInt64Max, kInt64Max, dtypes::int64).data<int64_t>(),
            (std::vector<int64_t>{kInt64Min, -1, kInt64Max - 1}));
}

TEST(TensorSizes, thirty_axes) {
  std::vector<int64_t> shape(30, 1), order;
  for (const size_t axis : {0, 7, 13, 29}) shape[axis] = 2;
  for (int64_t i = 30; i-- > 0;) order.push_back(i);
  Tensor x = test::counted(shape);
  Tensor turned = x.permute(order);
  turned.update(Op::ADD, 1);
  EXPECT_EQ(x.data<float>(), (test::counted({16}) + 1).data<float>());
  EXPECT_EQ(turned.data<float>(),
            (x.reshape({2, 2, 2, 2}).permute({3, 2, 1, 0}) + 0).data<float>());
  EXPECT_EQ((x * turned).sum({{0, 7, 13}}).data<float>().size(), 8U);
  Tensor flipped = x.flip(std::vector<int64_t>{0, 7, 13, 29});
  flipped.at({0}).assign(0);
  EXPECT_EQ(x.sum().item<float>(), 36);
  EXPECT_EQ(Tensor::full(std::vector<int64_t>(200, 1), 3).sum().item<int>(), 3);
}

TEST(TensorSizes, none_and_one) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{0}, {1}, {}, {1, 0}, {0, 1, 0}, {1, 1, 1}, {3, 0, 2}}) {
    Tensor x = Tensor::full(shape, 2);
    x.update(Op::ADD, 1);
    Tensor view = x.flip(std::vector<int64_t>(shape.empty() ? 0 : 1, 0));
    view.assign(view * view);
    const size_t count = size_t(x.numel());
    EXPECT_EQ(x.data<int32_t>(), std::vector<int32_t>(count, 9));
    EXPECT_EQ(x.sum().item<int>(), int(count) * 9);
    EXPECT_EQ(x.prod().item<int>(), count == 0 ? 1 : 9);
    EXPECT_EQ(x.flatten().pad({{1, 1}}, 4).data<int32_t>().size(), count + 2);
    EXPECT_EQ(Tensor::cat({x.flatten(), x.flatten()}).numel(), int64_t(2 * count));
    EXPECT_EQ(x.kernel_count(), 0U);
    x.realize().realize();
    EXPECT_TRUE(x.is_realized());
  }
}

}  // namespace
}  // namespace weft
