// Long sums have the same bits for every number of threads and every place, and errors that do not
// grow with their length.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "base/config.h"
#include "runtime/cpu/llvm_library.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/dtype.h"
#include "weft/index.h"
#include "weft/tensor.h"

namespace weft {
namespace {

Axes along(int64_t axis) { return std::vector<int64_t>{axis}; }

// Positive ones.
Tensor numbers(int64_t rows, int64_t columns) {
  std::vector<float> values(size_t(rows * columns));
  for (size_t i = 0; i < values.size(); i++) values[i] = float(i * 7919 % 100003) * 1e-5F;
  return Tensor::from(std::span<const float>(values), {rows, columns}, "CPU").realize();
}

TEST(SumsInBlocks, HaveTheSameBitsForAnyNumberOfThreads) {
  if (!has_llvm()) GTEST_SKIP() << "no LLVM";
  const Tensor x = numbers(300, 1111), y = numbers(1111, 70);
  const std::vector<std::function<Tensor()>> cases{
      [&] { return x.sum(along(0)); }, [&] { return x.sum(along(1)); },
      [&] { return x.sum(); },         [&] { return x.matmul(y); },
      [&] { return x.softmax(1); },    [&] { return x.var(along(0)); },
      [&] { return x.mul(x).sum(); }};
  for (size_t i = 0; i < cases.size(); i++) {
    std::vector<float> first;
    for (const int threads : {1, 2, 7}) {
      const test::Setting limit(config().threads, threads);
      const std::vector<float> got = cases[i]().data<float>();
      if (first.empty()) first = got;
      EXPECT_EQ(got, first) << "case " << i << ", " << threads << " threads";
    }
  }
}

// Rows that do not fill a tile are computed as the others are.
TEST(SumsInBlocks, HaveTheSameBitsInEveryRow) {
  if (!has_llvm()) GTEST_SKIP() << "no LLVM";
  constexpr int64_t rows = 64, terms = 2000, columns = 70;
  const Tensor row = numbers(1, terms), y = numbers(terms, columns);
  const std::vector<float> got =
      row.expand({rows, terms}).clone().realize().matmul(y).data<float>();
  for (size_t i = columns; i < got.size(); i++) EXPECT_EQ(got[i], got[i - columns]) << i;
}

// In float32, against float64, in units of a rounding.
TEST(SumsInBlocks, HaveSmallErrors) {
  if (!has_llvm()) GTEST_SKIP() << "no LLVM";
  const auto error = [](const Tensor& of, const std::function<Tensor(const Tensor&)>& sum) {
    const double true_sum = sum(of.cast(dtypes::float64)).item<double>();
    return std::abs(sum(of).item<double>() - true_sum) / true_sum * 0x1p24;
  };
  const Tensor wide = numbers(1, 1 << 20), tall = numbers(1 << 18, 3);
  const auto all = [](const Tensor& x) { return x.sum(); };
  const auto squares = [](const Tensor& x) { return x.square().sum(); };
  EXPECT_LT(error(wide, all), 8);
  EXPECT_LT(error(wide.at({Slice{}, Slice{.step = 3}}), all), 8);
  EXPECT_LT(error(wide.at({Slice{}, Slice{.step = 2}}), squares), 8);
  EXPECT_LT(error(tall, [](const Tensor& x) { return x.sum(along(0)).sum(); }), 8);
  EXPECT_LT(error(tall, [](const Tensor& x) { return x.var(along(0)).sum(); }), 8);
  EXPECT_LT(error(tall, [](const Tensor& x) { return x.at({Slice{}, Slice{.stop = 1}}).sum(); }),
            8);
}

}  // namespace
}  // namespace weft
