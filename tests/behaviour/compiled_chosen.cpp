// Reads at places that memory holds, whose indices are held in range: compiled, they stay there
// where a condition around them would allow more.
#include <cstddef>
#include <cstdint>
#include <map>

#include <gtest/gtest.h>

#include "codegen/opt/opt.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/parse.h"
#include "runtime/cpu/cpu_toolchain.h"
#include "tests/fuzz/kernel_cases.h"
#include "tests/gpu_devices.h"
#include "tests/kernel_batch.h"

namespace weft {
namespace {

// out[r] = 0 <= i < 6 and 0 <= j < 6 ? x[j] : 0, with i = a[r] and j = x[i].
constexpr const char* kChain = R"(
%0 = CONST index 4
%1 = DEFINE_GLOBAL ptr<int32, global> (%0) 0
%2 = RANGE index (%0) 0:loop
%3 = INDEX ptr<int32, global> (%1, %2)
%4 = CONST index -1
%5 = DEFINE_GLOBAL ptr<int32, global> (%0) 1
%6 = INDEX ptr<int32, global> (%5, %2)
%7 = LOAD int32 (%6)
%8 = CAST index (%7)
%9 = CMPLT bool (%4, %8)
%10 = CONST index 6
%11 = CMPLT bool (%8, %10)
%12 = AND bool (%9, %11)
%13 = DEFINE_GLOBAL ptr<int32, global> (%10) 2
%14 = CONST index 5
%15 = MIN index (%8, %14)
%16 = CONST index 0
%17 = MAX index (%15, %16)
%18 = INDEX ptr<int32, global> (%13, %17)
%19 = LOAD int32 (%18)
%20 = CAST index (%19)
%21 = CMPLT bool (%4, %20)
%22 = CMPLT bool (%20, %10)
%23 = AND bool (%21, %22)
%24 = MIN index (%20, %14)
%25 = MAX index (%24, %16)
%26 = INDEX ptr<int32, global> (%13, %25)
%27 = LOAD int32 (%26)
%28 = CONST int32 0
%29 = WHERE int32 (%23, %27, %28)
%30 = WHERE int32 (%12, %29, %28)
%31 = STORE void (%3, %30)
%32 = END void (%31, %2)
%33 = SINK void (%32)
)";

std::map<int64_t, Array> before_it() {
  constexpr int64_t far = int64_t(1) << 30;
  return {{0, Array::zeros(dtypes::int32, {4})},
          {1, Array::of_ints(dtypes::int32, {4}, {-far, far, 1, 2})},
          {2, Array::of_ints(dtypes::int32, {6}, {7, 5, -far, far, 0, 9})}};
}
std::map<int64_t, Array> after_it() {
  std::map<int64_t, Array> after = before_it();
  after[0] = Array::of_ints(dtypes::int32, {4}, {0, 0, 9, 0});
  return after;
}

TEST(CompiledChosen, ReadsStayInRange) {
  Arena arena;
  const UOp kernel = parse(arena, kChain);
  const std::map<int64_t, Array> before = before_it(), after = after_it();
  for (const Toolchain toolchain : {Toolchain::kLlvm, Toolchain::kC}) {
    if (!is_installed(toolchain)) continue;
    test::KernelBatch batch(toolchain);
    const size_t plain = batch.add(kernel, OptList{});
    const size_t wide = batch.add(kernel, parse_opts("VECTOR(0, 4)"));
    const size_t copies = batch.add(kernel, parse_opts("UPCAST(0, 2)"));
    batch.compile();
    for (const size_t i : {plain, wide, copies}) {
      EXPECT_EQ(test::difference(after, batch.run(i, before)), "") << i;
    }
  }
}

class CompiledChosenOnDevice : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, CompiledChosenOnDevice, testing::ValuesIn(test::kGpuDevices),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(CompiledChosenOnDevice, ReadsStayInRange) {
  const auto [device, missing] = test::gpu_device(GetParam());
  if (device == nullptr) GTEST_SKIP() << missing;
  Arena arena;
  const UOp kernel = parse(arena, kChain);
  test::KernelBatch batch(*device);
  for (const size_t i : {batch.add(kernel), batch.add(kernel, parse_opts("UPCAST(0, 2)"))}) {
    EXPECT_EQ(test::difference(after_it(), batch.run(i, before_it())), "") << i;
  }
}

}  // namespace
}  // namespace weft
