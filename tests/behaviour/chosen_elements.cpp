// Tensors as indices, gather and scatter, in C++.
#include <cstdint>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/ref.h"
#include "ir/op.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "value/value.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"

namespace weft {
namespace {

using Numbers = std::vector<int64_t>;

Tensor numbers(const Numbers& list, std::string_view device = {}) {
  return Tensor::from<int64_t>(list, {int64_t(list.size())}, device);
}

TEST(ChosenElements, AreReadAndWrittenByIntegers) {
  const Tensor a = Tensor::arange(int64_t(12)).reshape({3, 4});
  const Tensor rows = numbers({2, 0});
  EXPECT_EQ(a.at({rows}).data<int64_t>(), (Numbers{8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(a.at({rows, numbers({1, -1})}).data<int64_t>(), (Numbers{9, 3}));
  EXPECT_EQ(a.at({Slice{}, rows}).data<int64_t>(), (Numbers{2, 0, 6, 4, 10, 8}));
  Tensor b = a.clone();
  b.set({rows, int64_t(0)}, int64_t(-1));
  EXPECT_EQ(b.data<int64_t>(), (Numbers{-1, 1, 2, 3, 4, 5, 6, 7, -1, 9, 10, 11}));
  EXPECT_EQ(a.at({0, 0}).item<int64_t>(), 0);
}

TEST(ChosenElements, OfTwoAtOnePlaceTheLastStays) {
  Tensor a = Tensor::zeros({4}, dtypes::int64);
  a.set({numbers({1, 3, 1})}, numbers({5, 6, 7}));
  EXPECT_EQ(a.data<int64_t>(), (Numbers{0, 7, 0, 6}));
  const Tensor sums = a.index_add(0, numbers({1, 1, 0}), numbers({1, 2, 3}));
  EXPECT_EQ(sums.data<int64_t>(), (Numbers{3, 10, 0, 6}));
}

TEST(ChosenElements, MasksWriteWithoutBeingRealised) {
  Tensor a = Tensor::arange(int64_t(5));
  const Tensor mask = a.binary(Op::CMPLT, int64_t(2));
  a.set({mask}, int64_t(9));
  EXPECT_FALSE(mask.is_realized());
  EXPECT_EQ(a.data<int64_t>(), (Numbers{9, 9, 2, 3, 4}));
  EXPECT_EQ(a.at({mask}).numel(), 2);
  EXPECT_EQ(a.nonzero().shape()[0], 5);
}

TEST(ChosenElements, AlongAnAxis) {
  const Tensor a = Tensor::arange(int64_t(6)).reshape({2, 3});
  const Tensor i = numbers({2, 0}).reshape({2, 1});
  EXPECT_EQ(a.gather(1, i).data<int64_t>(), (Numbers{2, 3}));
  EXPECT_EQ(a.scatter(1, i, int64_t(7)).data<int64_t>(), (Numbers{0, 1, 7, 7, 4, 5}));
  EXPECT_EQ(a.scatter(1, i, int64_t(7), Op::ADD).data<int64_t>(), (Numbers{0, 1, 9, 10, 4, 5}));
  EXPECT_EQ(a.take(numbers({5, -6})).data<int64_t>(), (Numbers{5, 0}));
}

TEST(ChosenElements, OutOfRangeIsAnError) {
  const Tensor a = Tensor::arange(int64_t(3));
  EXPECT_THROW(a.at({numbers({3})}), IndexError);
  const Tensor lazy = a.at({numbers({3}).add(int64_t(1))});
  EXPECT_THROW(lazy.data<int64_t>(), IndexError);
  EXPECT_THROW(lazy.add(int64_t(1)).data<int64_t>(), IndexError);
}

TEST(ChosenElements, AreCombinedAsTheNumbersThatAViewShows) {
  const Tensor index = Tensor::from<int32_t>({0, 2, 0});
  for (const bool is_lazy : {false, true}) {
    Tensor x = Tensor::from<float>({1, 2, 3});
    if (is_lazy) x = x * 1.0;
    const Tensor bits = x.bitcast(dtypes::int32);
    const std::vector<int32_t> before = bits.data<int32_t>();
    const Ref<Value> places = places_of("test", index, 0, 3).index;
    Chosen{bits, 0, 1, places}.write("test", read(Tensor::from<int32_t>({1, 2, 4})), Op::ADD);
    EXPECT_EQ(bits.data<int32_t>(),
              (std::vector<int32_t>{before[0] + 5, before[1], before[2] + 2}));
    EXPECT_EQ(x.bitcast(dtypes::int32).data<int32_t>(), bits.data<int32_t>());
    EXPECT_EQ(x.data<float>()[1], 2);
  }
}

}  // namespace
}  // namespace weft
