// Every elementwise op on every dtype that the targets have text for, compiled and compared with
// the reference evaluator on the edges of the dtypes: in lanes of 1, 4 and 16 on the CPU, and on
// devices with workgroups where there are any.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/scalar.h"
#include "render/render.h"
#include "runtime/device.h"
#include "runtime/program.h"
#include "tests/gpu_devices.h"
#include "tests/op_cases.h"
#include "tests/program_builder.h"
#include "tests/run_program.h"

namespace weft {
namespace {

using test::Buffers;
using test::kOpTypes;
using test::Language;
using test::OpCase;

constexpr uint16_t kOneLane[] = {1};
// On devices, which bound arguments; four are operands.
size_t results_of_a_kernel(const Device& device) {
  return std::min<size_t>(48, device.limits().buffers - 4);
}

bool is_nan(DType type, uint64_t bits) {
  return type.is_float() && std::isnan(double_of_bits(type, bits));
}

// The payload of a NaN that arithmetic makes is the machine's.
void expect_same(const OpCase& c, const Buffers& expected, const Buffers& given) {
  for (size_t k = 0; k < c.names.size(); k++) {
    const Array &e = expected.at(int64_t(k) + 4), &g = given.at(int64_t(k) + 4);
    const bool is_exact = c.names[k].starts_with("NEG") || c.names[k].starts_with("WHERE") ||
                          c.names[k].starts_with("BITCAST") || c.names[k].starts_with("GEP") ||
                          c.names[k].starts_with("VECTORIZE");
    for (size_t i = 0; i < e.data.size(); i++) {
      if (e.data[i] == g.data[i]) continue;
      if (!is_exact && is_nan(e.dtype, e.data[i]) && is_nan(e.dtype, g.data[i])) continue;
      const auto in = [&](int64_t b) {
        const Array& a = expected.at(b);
        return text_of_bits(a.dtype, a.data[i]);
      };
      ADD_FAILURE() << c.names[k] << ": " << in(0) << ", " << in(1) << ", " << in(2) << " gives "
                    << text_of_bits(g.dtype, g.data[i]) << ", not "
                    << text_of_bits(e.dtype, e.data[i]);
      break;
    }
  }
}

struct Way {
  Language language;
  DType type;
};
class RenderedOps : public testing::TestWithParam<Way> {};

std::vector<Way> ways() {
  std::vector<Way> out;
  for (const Language language : {Language::kC, Language::kLlvm}) {
    for (const DType type : kOpTypes) out.push_back({language, type});
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, RenderedOps, testing::ValuesIn(ways()), [](const auto& test) {
  const char* language = test.param.language == Language::kC ? "C_" : "LLVM_";
  return language + test.param.type.name();
});

TEST_P(RenderedOps, LikeTheEvaluator) {
  const auto [language, type] = GetParam();
  if (!test::has_compiler(language)) GTEST_SKIP() << "no compiler";
  const bool is_c = language == Language::kC;
  const HalfCasts half =
      __builtin_cpu_supports("f16c") ? HalfCasts::kNative : HalfCasts::kDecomposed;
  OpCase c(type, is_c ? c_target(half) : llvm_target(half));
  const UOp linear = c.builder.linear();
  const std::string text = is_c ? render_c(linear, "kernel") : render_llvm(linear, "kernel");
  const test::CompiledProgram program(language, text);
  ASSERT_EQ(program.error(), "") << text;
  expect_same(c, test::evaluated(linear, c.buffers),
              test::called(program.function("kernel"), linear, c.buffers));
}

struct WayOnDevice {
  const char* device;
  DType type;
};
class RenderedOpsOnDevice : public testing::TestWithParam<WayOnDevice> {};

std::vector<WayOnDevice> ways_on_devices() {
  std::vector<WayOnDevice> out;
  for (const char* device : test::kGpuDevices) {
    for (const DType type : kOpTypes) out.push_back({device, type});
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, RenderedOpsOnDevice, testing::ValuesIn(ways_on_devices()),
                         [](const auto& test) {
                           return test.param.device + ("_" + test.param.type.name());
                         });

TEST_P(RenderedOpsOnDevice, LikeTheEvaluator) {
  const auto [name, type] = GetParam();
  const auto [device, missing] = test::gpu_device(name);
  if (device == nullptr) GTEST_SKIP() << missing;
  if (!test::has_dtype(*device, type)) GTEST_SKIP() << "the device has no " << type.name();
  const size_t most = results_of_a_kernel(*device);
  for (size_t first = 0, count = 1; first < count; first += most) {
    OpCase c(type, *device->target(), kOneLane, {first, most});
    count = c.count;
    const UOp linear = c.builder.linear();
    const std::shared_ptr<Program> program = device->compile_list(linear, "kernel");
    expect_same(c, test::evaluated(linear, c.buffers),
                test::run_on_device(*device, *program, c.buffers));
  }
}

}  // namespace
}  // namespace weft
