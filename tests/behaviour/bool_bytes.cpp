// Bools from bytes that are not 0 or 1.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "weft/weft.h"

namespace weft::test {
namespace {

TEST(BoolBytes, AnyByteBut0IsTrue) {
  const std::vector<std::byte> bytes = {std::byte(255), std::byte(0), std::byte(2), std::byte(1)};
  const Tensor copied = Tensor::from_bytes(bytes, {4}, dtypes::bool_);
  const Tensor numbers = Tensor::from_bytes(bytes, {4}, dtypes::uint8);
  for (const Tensor& m : {copied, numbers.bitcast(dtypes::bool_)}) {
    EXPECT_EQ(m.sum().item<int32_t>(), 3);
    EXPECT_EQ(m.logical_not().cast(dtypes::int32).data<int32_t>(),
              (std::vector<int32_t>{0, 1, 0, 0}));
    EXPECT_EQ(m.bytes(),
              (std::vector<std::byte>{std::byte(1), std::byte(0), std::byte(1), std::byte(1)}));
  }
  EXPECT_EQ(numbers.bitcast(dtypes::bool_).bitcast(dtypes::uint8).bytes(), bytes);
}

}  // namespace
}  // namespace weft::test
