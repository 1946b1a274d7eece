// Kernels of tensors of many sizes and layouts, with the optimisations that devices choose,
// compiled and run, give what the reference evaluator gives. The numbers are whole and small: sums
// are exact in any order.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "runtime/cpu/cpu_toolchain.h"
#include "runtime/device.h"
#include "schedule/schedule.h"
#include "tests/fuzz/kernel_cases.h"
#include "tests/gpu_devices.h"
#include "tests/kernel_batch.h"

namespace weft {
namespace {

using Sizes = std::vector<Dim>;
using Axes = std::vector<int64_t>;
using Pairs = std::vector<std::pair<Dim, Dim>>;

class Layouts {
 public:
  Layouts(Toolchain toolchain, DType type) : batch_(toolchain), type_(type) {}
  Layouts(Device& device, DType type) : batch_(device), limits_(device.limits()), type_(type) {}

  // A line of n: itself, backward, every other, every third backward, repeated, with zeros around
  // it.
  void add_line(int64_t n) {
    const UOp x = input(Sizes{n});
    add(x);
    add(flip(x, Axes{0}));
    if (n > 0) {
      add(strided_view(x, Sizes{(n + 1) / 2}, Sizes{2}, 0));
      add(strided_view(x, Sizes{(n + 2) / 3}, Sizes{-3}, n - 1));
      add(shrink(x, Pairs{{1, n}}));
    }
    add(expand(reshape(x, Sizes{n, 1}), Sizes{n, 3}));
    add(pad(x, Pairs{{2, 5}}));
    for (const Op op : reductions()) outputs_.push_back(reduce_axis(op, x, Axes{0}));
    finish(fmt::format("a line of {}", n));
  }

  // A table: transposed, and reduced in all ways.
  void add_table(int64_t rows, int64_t columns) {
    const UOp x = input(Sizes{rows, columns});
    add(permute(x, Axes{1, 0}));
    add(flip(permute(x, Axes{1, 0}), Axes{0}));
    for (const Op op : reductions()) {
      for (const Axes& axes : {Axes{0}, Axes{1}, Axes{0, 1}}) {
        outputs_.push_back(reduce_axis(op, x, axes));
      }
    }
    if (type_.is_float()) {
      outputs_.push_back(x - expand(reduce_axis(Op::MAX, x, Axes{1}), Sizes{rows, columns}));
    }
    finish(fmt::format("a table of {} x {}", rows, columns));
  }

  void add_product(int64_t m, int64_t k, int64_t n) {
    const Sizes all{m, k, n};
    const UOp a = expand(reshape(input(Sizes{m, k}), Sizes{m, k, 1}), all);
    const UOp b = expand(reshape(input(Sizes{k, n}), Sizes{1, k, n}), all);
    outputs_.push_back(reduce_axis(Op::ADD, a * b, Axes{1}));
    finish(fmt::format("a product of {} x {} x {}", m, k, n));
  }

  void check() {
    batch_.compile();
    for (size_t i = 0; i < cases_.size(); i++) {
      const auto& [name, kernel] = cases_[i];
      try {
        const std::string fault =
            test::difference(kernel.after, batch_.run(i, kernel.before, kernel.variables));
        EXPECT_EQ(fault, "") << name << "\n" << print(kernel.ast);
      } catch (const std::exception& e) {
        ADD_FAILURE() << name << ": " << e.what() << "\n" << print(kernel.ast);
      }
    }
  }

 private:
  UOp input(const Sizes& shape) {
    int64_t count = 1;
    for (const Dim d : shape) count *= d.value();
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < count; i++) {
      numbers.push_back(type_.is_bool() ? i % 3 == 1 : (i * 5 + int64_t(buffers_.size())) % 7 - 3);
    }
    const auto id = int64_t(buffers_.size());
    buffers_[id] = Array::of_ints(type_, {count}, numbers);
    return reshape(buffer(arena_, type_, count, "REF", id), shape);
  }
  std::vector<Op> reductions() const {
    return type_.is_bool() ? std::vector{Op::OR, Op::AND} : std::vector{Op::ADD, Op::MAX};
  }

  // x, and x with itself.
  void add(UOp x) { outputs_.push_back(type_.is_bool() ? ~x : x * x + x); }

  void finish(const std::string& name) {
    for (UOp& n : outputs_) n = contiguous(n);
    for (test::KernelCase& kernel : test::kernel_cases(sink(arena_, outputs_), buffers_, limits_)) {
      batch_.add(kernel.ast);
      cases_.emplace_back(name, std::move(kernel));
    }
    outputs_.clear();
    buffers_.clear();
  }

  Arena arena_;
  test::KernelBatch batch_;
  KernelLimits limits_;
  DType type_;
  std::map<int64_t, Array> buffers_;
  std::vector<UOp> outputs_;
  std::vector<std::pair<std::string, test::KernelCase>> cases_;
};

struct Way {
  Toolchain toolchain;
  DType type;
};
class CompiledLayouts : public testing::TestWithParam<Way> {};

std::vector<Way> ways() {
  std::vector<Way> out;
  for (const DType type : {dtypes::float32, dtypes::int8, dtypes::float16, dtypes::float64,
                           dtypes::bool_, dtypes::uint64}) {
    out.push_back({Toolchain::kLlvm, type});
  }
  for (const DType type : {dtypes::float32, dtypes::int8}) out.push_back({Toolchain::kC, type});
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, CompiledLayouts, testing::ValuesIn(ways()), [](const auto& test) {
  return (test.param.toolchain == Toolchain::kC ? "C_" : "LLVM_") + test.param.type.name();
});

// Nothing, one, primes, and one less and more than the lanes of vectors.
TEST_P(CompiledLayouts, LikeTheEvaluator) {
  const auto [toolchain, type] = GetParam();
  if (!is_installed(toolchain)) GTEST_SKIP() << "the toolchain is not installed";
  Layouts layouts(toolchain, type);
  for (const int64_t n : {0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 257}) {
    layouts.add_line(n);
  }
  for (const int64_t rows : {1, 5, 16, 17, 33}) {
    for (const int64_t columns : {1, 7, 15, 16, 33, 65}) layouts.add_table(rows, columns);
  }
  if (!type.is_bool()) {
    for (const auto& [m, k, n] : {std::tuple{1, 1, 1},
                                  {1, 16, 17},
                                  {7, 13, 5},
                                  {8, 8, 8},
                                  {16, 33, 16},
                                  {17, 9, 33},
                                  {33, 1, 31}}) {
      layouts.add_product(m, k, n);
    }
  }
  layouts.check();
}

class CompiledLayoutsOnDevice : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, CompiledLayoutsOnDevice, testing::ValuesIn(test::kGpuDevices),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(CompiledLayoutsOnDevice, LikeTheEvaluator) {
  const auto [device, missing] = test::gpu_device(GetParam());
  if (device == nullptr) GTEST_SKIP() << missing;
  for (const DType type : {dtypes::float32, dtypes::int8}) {
    Layouts layouts(*device, type);
    for (const int64_t n : {0, 1, 257}) layouts.add_line(n);
    layouts.add_table(17, 65);
    layouts.add_product(17, 9, 33);
    layouts.check();
  }
}

}  // namespace
}  // namespace weft
