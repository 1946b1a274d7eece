// a({1, _}) = 5 and its relatives.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "weft/weft.h"

namespace weft::test {
namespace {

using Ints32 = std::vector<int32_t>;

TEST(Indexed, PartsAreWritten) {
  const Tensor a = arange(6).reshape({2, 3});
  a({1, _}) = 5;
  EXPECT_EQ(a.data<int32_t>(), (Ints32{0, 1, 2, 5, 5, 5}));
  a({_, Slice{.start = 1}}) += 10;
  a({0, 0}) = a({1, 1});
  EXPECT_EQ(a.data<int32_t>(), (Ints32{15, 11, 12, 5, 15, 15}));
  a({Ellipsis{}, -1}) = Tensor::from({7, 8});
  a({1}) *= Tensor::from({1, 2, 3});
  EXPECT_EQ(a.data<int32_t>(), (Ints32{15, 11, 7, 5, 30, 24}));
}

TEST(Indexed, PartsAreTensors) {
  const Tensor a = arange(6).reshape({2, 3});
  EXPECT_EQ(a({1, 2}).item<int>(), 5);
  const Tensor row = a({1});  // a view
  a({1, 0}) = 9;
  EXPECT_EQ(row.data<int32_t>(), (Ints32{9, 4, 5}));
  EXPECT_EQ((a({0}) + a({1})).data<int32_t>(), (Ints32{9, 5, 7}));
}

TEST(Indexed, TensorsAreIndices) {
  const Tensor a = arange(5);
  a({Tensor::from({0, 4, 0})}) = Tensor::from({7, 8, 9});  // the last one stays
  a({a.lt(int64_t(2))}) -= 1;
  EXPECT_EQ(a.data<int32_t>(), (Ints32{9, 0, 2, 3, 8}));
  EXPECT_THROW(a({Tensor::from({5})}) = 1, IndexError);
  EXPECT_THROW(a({5}) = 1, IndexError);
  EXPECT_EQ(a.data<int32_t>(), (Ints32{9, 0, 2, 3, 8}));
}

}  // namespace
}  // namespace weft::test
