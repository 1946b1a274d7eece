// Reductions with several accumulators, of every integer dtype, give what one gives:
// compilers join neighbouring accumulators into vectors.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/opt/opt.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "runtime/cpu/cpu_toolchain.h"
#include "tests/fuzz/kernel_cases.h"
#include "tests/kernel_batch.h"

namespace weft {
namespace {

constexpr int64_t kSize = 16;
constexpr DType kTypes[] = {dtypes::int8,  dtypes::int16,  dtypes::int32,  dtypes::int64,
                            dtypes::uint8, dtypes::uint16, dtypes::uint32, dtypes::uint64};
constexpr const char* kOpts[] = {"GROUP(0, 4)", "GROUP(0, 8)", "GROUP(0, 2) UNROLL(0, 2)",
                                 "PAD(0, 12) GROUP(0, 4)"};

Array numbers(DType type) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < kSize; i++) values.push_back((i * 37 + 11) % 97);
  return Array::of_ints(type, {kSize}, values);
}

class CompiledGroups : public testing::TestWithParam<Toolchain> {};
INSTANTIATE_TEST_SUITE_P(All, CompiledGroups, testing::Values(Toolchain::kC, Toolchain::kLlvm),
                         [](const auto& test) {
                           return test.param == Toolchain::kC ? "C" : "LLVM";
                         });

TEST_P(CompiledGroups, LikeTheEvaluator) {
  if (!is_installed(GetParam())) GTEST_SKIP() << "the toolchain is not installed";
  Arena arena;
  test::KernelBatch batch(GetParam());
  std::vector<std::pair<std::string, test::KernelCase>> cases;
  for (const DType type : kTypes) {
    const UOp x = buffer(arena, type, kSize, "REF", 0);
    const UOp sums[] = {reduce_axis(Op::ADD, x, std::vector<int64_t>{0}),
                        reduce_axis(Op::MUL, x, std::vector<int64_t>{0}),
                        reduce_axis(Op::MAX, x, std::vector<int64_t>{0}),
                        reduce_axis(Op::ADD, x * x, std::vector<int64_t>{0})};
    for (UOp sum : sums) {
      const UOp all = sink(contiguous(sum));
      for (const char* opts : kOpts) {
        for (test::KernelCase& kernel : test::kernel_cases(all, {{0, numbers(type)}})) {
          batch.add(kernel.ast, parse_opts(opts));
          cases.emplace_back(fmt::format("{} of {}, {}", short_form(sum), type.name(), opts),
                             std::move(kernel));
        }
      }
    }
  }
  batch.compile();
  for (size_t i = 0; i < cases.size(); i++) {
    const auto& [name, kernel] = cases[i];
    EXPECT_EQ(test::difference(kernel.after, batch.run(i, kernel.before, kernel.variables)), "")
        << name;
  }
}

}  // namespace
}  // namespace weft
