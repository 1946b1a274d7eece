// WebGPU where there is a driver: memory and its end, parts of words written by many threads,
// kernels that do not compile, forks. Where there is none, what is said of it.
#include "runtime/webgpu/webgpu_device.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/webgpu/webgpu_pipeline.h"  // IWYU pragma: keep
#include "runtime/webgpu/webgpu_queue.h"
#include "tests/gpu_devices.h"
#include "tests/program_builder.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/tensor.h"

namespace weft {
namespace {

TEST(WebGpu, WhatIsMissingIsSaid) {
  if (!webgpu_devices().empty()) GTEST_SKIP() << "there is a device";
  try {
    find_device("WEBGPU");
    FAIL() << "it was found";
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find(webgpu_missing()), std::string::npos) << e.what();
  }
}

class WebGpuDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (webgpu_devices().empty()) GTEST_SKIP() << webgpu_missing();
    device_ = &find_device("WEBGPU");
  }

  Device* device_ = nullptr;
};

TEST_F(WebGpuDevice, BytesOfAnyNumberComeBack) {
  for (const size_t size : {0, 1, 2, 3, 4, 5, 17, 4096, (16 << 20) + 3}) {
    std::vector<std::byte> bytes(size), back(size);
    for (size_t i = 0; i < size; i++) bytes[i] = std::byte(i * 7 + 1);
    const Ref<Buffer> buffer = Buffer::make(*device_, size);
    buffer->copy_in(bytes);
    buffer->copy_out(back);
    EXPECT_EQ(back, bytes) << size;
  }
}

TEST_F(WebGpuDevice, TooLargeABufferIsAnErrorWithSizes) {
  const std::string text = test::thrown<Error>([&] { Buffer::make(*device_, size_t(1) << 50); });
  EXPECT_NE(text.find("1125899906842624 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("at most"), std::string::npos) << text;
}

TEST_F(WebGpuDevice, ThereIsNoFloat64) {
  EXPECT_THROW(Tensor::zeros({2}, dtypes::float64, "WEBGPU"), DTypeError);
  const Tensor x = Tensor::zeros({2}, dtypes::float32, "WEBGPU");
  const std::string text = test::thrown<Error>([&] { x.cast(dtypes::float64); });
  EXPECT_NE(text.find("float64"), std::string::npos) << text;
  EXPECT_NE(text.find("WEBGPU"), std::string::npos) << text;
  EXPECT_EQ(x.dtype(), dtypes::float32);
}

// The neighbours of an element are written by other threads at the same time.
TEST_F(WebGpuDevice, SmallElementsOfOneWordAreWrittenByManyThreads) {
  constexpr int64_t size = 100'003;
  for (const DType type : {dtypes::uint8, dtypes::int16, dtypes::bool_, dtypes::bfloat16}) {
    const Tensor x = Tensor::arange(int64_t(0), size, int64_t(1), dtypes::int32, "WEBGPU");
    const Tensor y = x.mod(251).cast(type).contiguous().cast(dtypes::int32);
    const std::vector<int32_t> got = y.data<int32_t>();
    ASSERT_EQ(int64_t(got.size()), size);
    for (int64_t i = 0; i < size; i++) {
      const auto small = int32_t(i % 251);
      ASSERT_EQ(got[size_t(i)], type == dtypes::bool_ ? int32_t(small != 0) : small)
          << type.name() << " at " << i;
    }
  }
}

// Mesa's software Vulkan ends the loops of a thread after 65535 iterations.
TEST_F(WebGpuDevice, LoopsOfOneThreadAreDoneOrRefused) {
  const auto counted = [&](int64_t outer, int64_t inner) {
    test::ProgramBuilder builder;
    const UOp out = builder.global(dtypes::int32, 1, 0), sum = builder.reg(dtypes::int32, 0);
    const UOp first = builder.write(sum, builder.integer(0));
    const UOp r0 = builder.range(builder.integer(outer), 0);
    const UOp r1 = builder.range(builder.integer(inner), 1);
    const UOp before = builder.after(sum, {first, r0, r1});
    const UOp next = builder.write(before, builder.binary(Op::ADD, before, r1));
    const UOp done = builder.end(builder.end(next, r1), r0);
    builder.store(builder.at(out, builder.integer(0)), builder.after(sum, {done}));
    test::Buffers buffers{{0, Array::zeros(dtypes::int32, {1})}};
    const auto program = device_->compile_list(builder.linear(), "loops");
    return test::run_on_device(*device_, *program, buffers).at(0).data[0];
  };
  EXPECT_EQ(counted(1, 65000), uint64_t(65000) * 64999 / 2);
  EXPECT_EQ(counted(1000, 1001), uint64_t(1000) * 1001 * 500);
  EXPECT_EQ(counted(1, 2'000'003) & 0xffffffff, (uint64_t(2'000'003) * 2'000'002 / 2) & 0xffffffff);
  const std::string text = test::thrown<DeviceError>([&] { counted(1'000'000, 100); });
  EXPECT_TRUE(text.empty() || text.find("iterations") != std::string::npos) << text;
}

// Fewer places than groups: the loop over them has a size that is a quotient.
TEST_F(WebGpuDevice, LoopsOverFewPlacesAreFew) {
  Tensor t = Tensor::full({5000}, 0, dtypes::int32, "WEBGPU");
  t.realize();
  t.shrink({{0, 3}}).assign(1);
  t.shrink({{3, 5000}}).assign(2);
  const std::vector<int32_t> got = t.data<int32_t>();
  EXPECT_EQ(std::ranges::count(got, 1), 3);
  EXPECT_EQ(std::ranges::count(got, 2), 4997);
}

TEST_F(WebGpuDevice, PowersAndRemaindersNeedNoFloat64) {
  const std::vector<float> x = {2, 0.3F, 7.5F, 1e-40F, 123456.7F, 3e9F, 1.0000001F, 0.7F};
  const std::vector<float> y = {0.5F, 2.7F, -3.3F, 0.25F, 5.1F, 0.37F, 1e7F, 100.5F};
  const Tensor a = Tensor::from(std::span<const float>(x), {8}, "WEBGPU");
  const Tensor b = Tensor::from(std::span<const float>(y), {8}, "WEBGPU");
  const std::vector<float> power = a.pow(b).data<float>(), rest = a.fmod(b).data<float>();
  for (size_t i = 0; i < x.size(); i++) {
    const double exact = std::pow(double(x[i]), double(y[i]));
    EXPECT_NEAR(power[i], exact, 3 * 0x1p-23 * exact) << x[i] << " to the power " << y[i];
    EXPECT_EQ(rest[i], std::fmod(x[i], y[i])) << x[i] << " by " << y[i];
  }
}

TEST_F(WebGpuDevice, WhatDoesNotCompileIsACompileError) {
  WebGpuQueue queue;
  try {
    queue.compile("@compute @workgroup_size(1) fn main() { let x: u32 = 1.5f; }", "wrong");
    FAIL() << "it compiled";
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("wrong"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("u32"), std::string::npos) << e.what();
  }
  const auto right = queue.compile("@compute @workgroup_size(1) fn main() { }", "right");
  queue.run(*right, {}, {}, {1, 1, 1});
  queue.synchronize();
}

TEST_F(WebGpuDevice, WhatFailsLaterIsADeviceError) {
  WebGpuQueue queue;
  const auto pipeline = queue.compile(
      "@group(0) @binding(1) var<storage, read_write> data: array<u32>;\n"
      "@compute @workgroup_size(1) fn main() { data[0] = 7u; }",
      "store");
  queue.run(*pipeline, {}, {}, {1, 1, 1});  // without the buffer
  EXPECT_THROW(queue.synchronize(), DeviceError);
  WebGpuQueue::Memory* memory = queue.allocate(4);
  queue.run(*pipeline, std::span(&memory, 1), {}, {1, 1, 1});
  std::array<uint32_t, 1> word{};
  queue.read(std::as_writable_bytes(std::span(word)), *memory);
  EXPECT_EQ(word[0], 7U);
  queue.free(memory);
}

TEST_F(WebGpuDevice, AForkedChildIsRefused) {
  Tensor x = Tensor::ones({16}, dtypes::float32, "WEBGPU");
  x.realize();
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = test::thrown<Error>([&] { (x + 1).data<float>(); });
    _exit(text.find("fork") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ((x + 1).data<float>()[3], 2.0F);
}

}  // namespace
}  // namespace weft
