// The arithmetic that counters count, and schedules say.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "base/config.h"
#include "ir/op.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/weft.h"

namespace weft {
namespace {

struct Case {
  const char* name;
  Tensor result;
  uint64_t flops;
};

std::vector<Case> cases() {
  const Tensor x = test::counted({4, 8}), y = test::counted({8, 5});
  return {
      {"one operation per element", x + 1, 32},
      {"moves are free", x.permute({1, 0}).flip({0}).clone(), 0},
      {"as many as were given", (x * x + 1) - x, 96},
      {"functions weigh more", x.unary(Op::EXP), 256},
      {"divisions too", x / 3, 128},
      {"a reduction takes in every element", x.sum(), 32},
      {"products and sums", x.matmul(y), 320},
      {"what stands outside of a loop", x.sum({{1}}) * 2 + 1, 32 + 8},
      {"no elements", x.at({Slice{0, 0}}) + 1, 0},
  };
}

TEST(KernelFlops, are_counted) {
  for (const Case& c : cases()) {
    Tensor result = c.result;
    uint64_t said = 0;
    for (const ScheduledKernel& kernel : result.schedule()) said += kernel.flops;
    EXPECT_EQ(said, c.flops) << c.name;
    reset_counters();
    result.realize();
    EXPECT_EQ(counters().flops, c.flops) << c.name;
  }
}

TEST(KernelFlops, are_those_of_the_graph_without_a_schedule) {
  const test::Setting reference(config().schedule, 0);
  for (const Case& c : cases()) {
    Tensor result = c.result;
    reset_counters();
    result.realize();
    EXPECT_EQ(counters().flops, c.flops) << c.name;
  }
}

TEST(KernelFlops, of_a_schedule_that_is_found_again) {
  for (int i = 0; i < 3; i++) {
    Tensor result = test::counted({16}) * 2;
    reset_counters();
    result.realize();
    EXPECT_EQ(counters().flops, 16U);
  }
}

}  // namespace
}  // namespace weft
