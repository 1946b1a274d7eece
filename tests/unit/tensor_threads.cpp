// Threads that build, write and realise at the same time see whole versions, and lose no write.
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ir/op.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/counters.h"
#include "weft/tensor.h"

namespace weft {
namespace {

constexpr int64_t kThreads = 4, kRounds = 50;

template <class Work>
void on_threads(Work work) {
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < kThreads; i++) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(TensorThreads, write_rows_of_one_tensor) {
  Tensor all = Tensor::zeros({kThreads, 3});
  on_threads([&](int64_t i) {
    Tensor row = all.at({i});
    for (int64_t k = 0; k < kRounds; k++) {
      row.update(Op::ADD, i + 1);
      if (k % 7 == i) row.realize();
      if (k % 11 != i) continue;
      EXPECT_EQ(row.data<float>(), test::Floats(3, float((k + 1) * (i + 1))));
    }
  });
  for (int64_t i = 0; i < kThreads; i++) {
    EXPECT_EQ(all.at({i}).data<float>(), test::Floats(3, float(kRounds * (i + 1))));
  }
}

TEST(TensorThreads, realise_one_value) {
  const Tensor x = test::counted({50});
  for (int round = 0; round < 20; round++) {
    Tensor y = x * 2;
    const Tensor z = y + 1;
    on_threads([&](int64_t i) {
      Tensor mine = i % 2 == 0 ? y : z;
      EXPECT_EQ(mine.sum().item<float>(), i % 2 == 0 ? 2450 : 2500);
      EXPECT_EQ((mine - y).max().item<float>(), i % 2 == 0 ? 0 : 1);
    });
  }
}

TEST(TensorThreads, copies_of_one_tensor) {
  Tensor shared = test::counted({8});
  on_threads([&](int64_t i) {
    for (int64_t k = 0; k < kRounds; k++) {
      Tensor mine = shared.clone();
      mine.set({i}, -1);
      test::Floats expected{0, 1, 2, 3, 4, 5, 6, 7};
      expected[size_t(i)] = -1;
      EXPECT_EQ(mine.data<float>(), expected);
    }
  });
  EXPECT_EQ(shared.sum().item<float>(), 28);
}

// h is read by two values that two threads realise: the product is computed by one of them.
TEST(TensorThreads, what_is_shared_is_computed_once) {
  const Tensor x = test::counted({6, 6});
  const auto kernels_of = [&](auto realize_both) {
    const Tensor h = x.matmul(x), low = h.min({{0}}), high = h.max({{1}});
    const uint64_t before = counters().kernels;
    realize_both(low, high);
    EXPECT_EQ(low.data<float>(), (test::Floats{330, 345, 360, 375, 390, 405}));
    EXPECT_EQ(high.at({0}).item<float>(), 405);
    return counters().kernels - before;
  };
  const uint64_t alone = kernels_of([](Tensor low, Tensor high) {
    low.realize();
    high.realize();
  });
  EXPECT_EQ(alone, 3U);
  for (int round = 0; round < 50; round++) {
    const uint64_t together = kernels_of([](Tensor low, Tensor high) {
      std::thread other([&] { low.realize(); });
      high.realize();
      other.join();
    });
    EXPECT_EQ(together, alone);
  }
}

TEST(TensorThreads, results_keep_their_values_while_another_writes) {
  constexpr int64_t size = 64;
  const Tensor base = test::counted({8, 8});
  std::vector<Tensor> results;
  for (int64_t k = 0; k < kRounds; k++) results.push_back(base.permute({1, 0}) + k);
  std::thread writer([&] {
    Tensor column = base.at({Slice{}, 3});
    for (int64_t k = 0; k < kRounds; k++) {
      column.update(Op::MUL, -1);
      column.update(Op::SUB, k);
      if (k % 3 == 0) column.realize();
    }
  });
  for (int64_t k = 0; k < kRounds; k++) {
    test::Floats expected;
    for (int64_t i = 0; i < size; i++) expected.push_back(float(i % 8 * 8 + (i >> 3) + k));
    EXPECT_EQ(results[size_t(k)].data<float>(), expected);
  }
  writer.join();
  float first = 3;
  for (int64_t k = 0; k < kRounds; k++) first = -first - float(k);
  EXPECT_EQ(base.at({0, 3}).item<float>(), first);
  EXPECT_EQ(base.at({0, 2}).item<float>(), 2);
}

}  // namespace
}  // namespace weft
