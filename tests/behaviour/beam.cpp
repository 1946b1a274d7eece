// Kernels whose optimisations are searched for on the CPU compute what they did before.
#include "weft/beam.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/child_process.h"
#include "base/config.h"
#include "base/error.h"
#include "codegen/opt/search_opts.h"
#include "ir/op.h"
#include "runtime/cpu/llvm_library.h"
#include "runtime/kernel_cache.h"
#include "runtime/search_kernel.h"
#include "schedule/schedule_cache.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

class Beam : public testing::Test {
 protected:
  Beam() { clear_schedule_cache(); }
  ~Beam() override { clear_schedule_cache(); }
  void SetUp() override {
    if (!has_llvm()) GTEST_SKIP() << "not installed";
  }
  // Small integers: sums of them are exact in any order.
  static Tensor numbers(Ints shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    test::Floats elements;
    for (int64_t i = 0; i < count; i++) elements.push_back(float(i * 7919 % 13) - 6);
    return Tensor::from(std::span<const float>(elements), shape, "CPU");
  }
  template <class Make>
  static test::Floats with_beam(int width, Make&& make) {
    const test::Setting beam(config().beam, width);
    return make().template data<float>();
  }
  static void expect_measured() {
    const SearchResult found = last_search();
    ASSERT_TRUE(found.seconds && found.chosen_seconds);
    EXPECT_LE(*found.seconds, *found.chosen_seconds);
    EXPECT_GT(found.timed, 10U);
  }

  TempFolder folder_;
  test::Setting<std::string> cache_{config().cache_dir, folder_.path() + "/cache"};
  test::Setting<int> limit_{config().beam_seconds, 20};
};

TEST_F(Beam, multiplies_matrices) {
  const auto make = [] { return numbers({61, 70}).matmul(numbers({70, 83})); };
  const test::Floats expected = with_beam(0, make);
  EXPECT_EQ(with_beam(2, make), expected);
  expect_measured();
}

TEST_F(Beam, transposes) {
  const auto make = [] { return numbers({150, 131}).permute({1, 0}).clone(); };
  const test::Floats expected = with_beam(0, make);
  EXPECT_EQ(with_beam(2, make), expected);
  expect_measured();
}

TEST_F(Beam, computes_softmax) {
  const auto make = [] {
    const Tensor x = numbers({50, 100});
    const Tensor e = (x - x.max({{1}}, true)).unary(Op::EXP);
    return e / e.sum({{1}}, true);
  };
  const test::Floats expected = with_beam(0, make), got = with_beam(2, make);
  expect_measured();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); i++) {
    EXPECT_LE(std::abs(got[i] - expected[i]), 1e-5F * expected[i]) << i;
  }
}

// Nothing but the schedule, what was found and what was compiled is kept, and the next process
// needs no more.
TEST_F(Beam, is_remembered_and_keeps_no_candidates) {
  const auto make = [] { return numbers({400, 500}).sum({{1}}); };
  const test::Floats first = with_beam(2, make);
  expect_measured();
  EXPECT_EQ(kernel_cache()->counts().written, 3U);
  clear_schedule_cache();
  EXPECT_EQ(with_beam(2, make), first);
  EXPECT_EQ(kernel_cache()->counts().written, 3U);
  EXPECT_GE(kernel_cache()->counts().hits, 3U);
}

// A schedule that was prepared without is prepared anew.
TEST_F(Beam, can_be_switched_on_later) {
  const auto make = [] { return numbers({33, 65}).sum({{0}}); };
  const test::Floats expected = with_beam(0, make);
  const uint64_t before = kernel_cache()->counts().written;
  EXPECT_EQ(with_beam(1, make), expected);
  EXPECT_GT(kernel_cache()->counts().written, before);
}

TEST(SetBeam, says_what_it_was) {
  const test::Setting beam(config().beam, 3);
  EXPECT_EQ(set_beam(5), 3);
  EXPECT_EQ(config().beam, 5);
  EXPECT_EQ(test::thrown<Error>([] { set_beam(-1); }), "[set_beam] -1 is not from 0 to 1024");
  EXPECT_EQ(config().beam, 5);
}

}  // namespace
}  // namespace weft
