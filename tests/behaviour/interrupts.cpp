// A C++ program ends a call by request_interrupt(), and can make it again.
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/tensor_helpers.h"
#include "weft/dtype.h"
#include "weft/interrupt.h"
#include "weft/tensor.h"

namespace weft {
namespace {

// Two kernels each.
Tensor many(Tensor x, int count) {
  for (int i = 0; i < count; i++) x = x * 0.5 + x.max() * 0.0 + 1;
  return x;
}

TEST(Interrupts, end_the_next_call) {
  Tensor y = Tensor::full({4}, 2.0, dtypes::float32) + 1;
  request_interrupt();
  EXPECT_THROW(y.realize(), Interrupted);
  EXPECT_EQ(y.data<float>(), (test::Floats{3, 3, 3, 3}));
}

TEST(Interrupts, end_the_call_that_is_under_way) {
  Tensor x = Tensor::full({1 << 20}, 0.0, dtypes::float32, "CPU").contiguous();
  x.realize();
  Tensor y = many(x, 4000);
  auto pressed = std::chrono::steady_clock::now();
  std::thread presser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    pressed = std::chrono::steady_clock::now();
    request_interrupt();
  });
  EXPECT_THROW(y.realize(), Interrupted);
  const auto now = std::chrono::steady_clock::now();
  presser.join();
  EXPECT_LT(now - pressed, std::chrono::seconds(2));
  EXPECT_EQ(many(x, 10).max().item<float>(), 2 - 1.0F / 512);
}

}  // namespace
}  // namespace weft
