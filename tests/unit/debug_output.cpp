// WEFT_DEBUG shows what its levels say, and nothing at 0.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/config.h"
#include "runtime/cpu/cpu_toolchain.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft {
namespace {

class Level {
 public:
  explicit Level(int level) { config().debug = level; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  ~Level() { config().debug = was_; }

 private:
  int was_ = config().debug;
};

// What a realise of a new kernel prints: a sum of so many terms.
std::string printed(int level, int terms) {
  const std::vector<int64_t> shape{12};
  Tensor ones = Tensor::full(shape, 1.0, dtypes::float32, "CPU").contiguous();
  ones.realize();
  const Level set(level);
  testing::internal::CaptureStderr();
  Tensor sum = ones;
  while (--terms > 0) sum = (sum + ones) * sum;
  sum.realize();
  return testing::internal::GetCapturedStderr();
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) n++;
  return n;
}

TEST(DebugOutput, LevelsAddToEachOther) {
  if (!is_installed(Toolchain::kLlvm) && !is_installed(Toolchain::kC))
    GTEST_SKIP() << "no compiler";
  EXPECT_EQ(printed(0, 2), "");
  EXPECT_EQ(count(printed(1, 3), "weft: run"), 0U);
  const std::string two = printed(2, 4);
  EXPECT_EQ(count(two, "weft: run"), 1U) << two;
  EXPECT_EQ(count(two, "weft: compile"), 1U) << two;
  EXPECT_EQ(count(two, "weft: plan"), 1U) << two;
  EXPECT_EQ(count(two, "GFLOPS"), 1U) << two;
  EXPECT_EQ(count(two, "optimisations:"), 0U) << two;
  const std::string three = printed(3, 5);
  EXPECT_EQ(count(three, "optimisations:"), 1U) << three;
  EXPECT_EQ(count(three, "source:"), 0U) << three;
  EXPECT_EQ(count(printed(4, 6), "source:"), 1U);
  EXPECT_EQ(count(printed(5, 7), "list:"), 1U);
  const std::string six = printed(6, 8);
  EXPECT_EQ(count(six, "after linearize:"), 1U) << six;
  EXPECT_EQ(count(six, "after gate loads:"), 1U) << six;
}

}  // namespace
}  // namespace weft
