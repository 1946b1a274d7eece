// What waits for forks, and in which order.
#include <string>

#include <gtest/gtest.h>

#include "base/at_fork.h"
#include "base/error.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::test {
namespace {

TEST(Forks, EachPlaceIsTakenOnce) {
  EXPECT_EQ(Tensor::full({3}, 1, dtypes::float32, "CPU").data<float>(), (Floats{1, 1, 1}));
  const std::string text = thrown<InternalError>([] { at_fork(ForkOrder::kMemory, [] {}, [] {}); });
  EXPECT_NE(text.find("is taken"), std::string::npos) << text;
}

}  // namespace
}  // namespace weft::test
