// Quotient and remainder at the ends of 64 bits, where their product overflows.
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/scalar.h"

namespace weft {
namespace {

TEST(WideDivision, TheProductOfQuotientAndDivisorMayOverflow) {
  constexpr auto least = uint64_t(std::numeric_limits<int64_t>::min());
  constexpr auto most = uint64_t(std::numeric_limits<int64_t>::max());
  const uint64_t v[] = {least, most};  // -2 * most leaves 64 bits
  EXPECT_EQ(evaluate_scalar(Op::IDIV, dtypes::int64, dtypes::int64, v), uint64_t(-2));
  EXPECT_EQ(evaluate_scalar(Op::MOD, dtypes::int64, dtypes::int64, v), most - 1);
  EXPECT_EQ(evaluate_scalar(Op::CDIV, dtypes::int64, dtypes::int64, v), uint64_t(-1));
  EXPECT_EQ(evaluate_scalar(Op::CMOD, dtypes::int64, dtypes::int64, v), uint64_t(-1));
}

}  // namespace
}  // namespace weft
