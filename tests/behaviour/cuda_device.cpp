// CUDA where there is a GPU: memory and its end, transfers, kernels that fail, graphs, forks. Where
// there is none, what is said of it, and all of that on a driver that does nothing but + 1.
#include "runtime/cuda/cuda_device.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child_process.h"
#include "base/error.h"
#include "base/ref.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "runtime/buffer.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/device.h"
#include "runtime/program.h"
#include "tests/unit/tensor_helpers.h"

namespace weft {
namespace {

TEST(Cuda, WhatIsMissingIsSaid) {
  if (!cuda_devices().empty()) GTEST_SKIP() << "there is a GPU";
  try {
    find_device("CUDA");
    FAIL() << "it was found";
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find(cuda_missing()), std::string::npos) << e.what();
  }
  bool is_listed = false;
  for (const DeviceEntry& entry : device_list()) {
    if (entry.name == "CUDA") is_listed = entry.missing == cuda_missing();
  }
  EXPECT_TRUE(is_listed);
}

bool is_fake() { return std::getenv("WEFT_FAKE_CUDA") != nullptr; }

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_devices().empty()) GTEST_SKIP() << cuda_missing();
    device_ = &find_device(is_fake() ? "CUDA:PTX" : "CUDA");
    if (!device_->missing().empty()) GTEST_SKIP() << device_->missing();
  }

  // out[at] = in[i] + 1 for i in a loop of `size`; `at` is i, moved by `shift`.
  std::shared_ptr<Program> add_one(int64_t size, int64_t shift, const std::string& name) {
    Arena arena;
    const UOp r = range(arena, size, 0);
    const UOp out = define_global(arena, dtypes::int32, size + shift, 0),
              in = define_global(arena, dtypes::int32, size, 1);
    const UOp value = load(index(in, r)) + 1;
    return device_->compile(sink(end(index(out, r + shift).assign(value), r)), name);
  }

  void fail_and_go_on() {
    const auto good = add_one(1000, 0, "good");
    const Ref<Buffer> in = counting(1000), out = Buffer::make(*device_, 4000);
    run(*good, out, in);
    device_->synchronize();
    run(*add_one(1000, int64_t(1) << 40, "bad"), out, in);
    const auto expect = [](auto&& action, const std::string& text) {
      try {
        action();
      } catch (const DeviceError& e) {
        if (std::string(e.what()).find(text) != std::string::npos) return;
        std::cerr << e.what() << "\n";
      }
      _exit(1);
    };
    expect([&] { content(*out); }, "the kernel bad failed: CUDA_ERROR_ILLEGAL_ADDRESS");
    expect([&] { content(*in); }, "the kernel bad failed");  // its memory is lost, for ever
    expect([&] { content(*in); }, "the kernel bad failed");
    const std::vector<std::byte> bytes(4000, std::byte(7));
    const Ref<Buffer> on_host = Buffer::make(find_device("CPU"), 4000);
    on_host->copy_in(bytes);
    if (content(*on_host).at(999) != 0x07070707) _exit(2);
    try {  // new memory, where the driver goes on
      const Ref<Buffer> again = counting(1000), result = Buffer::make(*device_, 4000);
      run(*good, result, again);
      if (content(*result).at(999) != 1000) _exit(3);
    } catch (const DeviceError& e) {
      if (std::string(e.what()).find("use it from another one") == std::string::npos) _exit(4);
    }
    _exit(0);
  }

  static std::vector<int32_t> content(const Buffer& buffer) {
    std::vector<int32_t> out(buffer.bytes() / 4);
    buffer.copy_out(std::as_writable_bytes(std::span(out)));
    return out;
  }

  Ref<Buffer> counting(int64_t size) {
    std::vector<int32_t> numbers(static_cast<size_t>(size));
    std::iota(numbers.begin(), numbers.end(), 0);
    Ref<Buffer> out = Buffer::make(*device_, numbers.size() * 4);
    out->copy_in(std::as_bytes(std::span(numbers)));
    return out;
  }

  static void run(Program& program, const Ref<Buffer>& out, const Ref<Buffer>& in) {
    Buffer* const arguments[] = {out.get(), in.get()};
    program.run(arguments, {});
  }

  Device* device_ = nullptr;
};

TEST_F(CudaDevice, TransfersOfAllSizes) {
  for (const int64_t size : {1, 1000, 100'000, 1 << 20, (5 << 20) + 3}) {
    const Ref<Buffer> buffer = counting(size), copy = Buffer::make(*device_, buffer->bytes());
    copy->copy_from(*buffer);
    const std::vector<int32_t> got = content(*copy);
    for (size_t i = 0; i < got.size(); i++) ASSERT_EQ(got[i], int32_t(i)) << size;
  }
}

TEST_F(CudaDevice, DevicesCopyAmongThemselves) {
  const Ref<Buffer> buffer = counting(3 << 20);
  for (Device* other : cuda_devices()) {
    const Ref<Buffer> copy = Buffer::make(*other, buffer->bytes());
    copy->copy_from(*buffer);
    EXPECT_EQ(content(*copy), content(*buffer)) << other->name();
  }
}

TEST_F(CudaDevice, MemoryThatIsFreedIsUsedAgain) {
  const void* first = Buffer::make(*device_, 12345)->memory();
  EXPECT_EQ(Buffer::make(*device_, 12345)->memory(), first);
}

TEST_F(CudaDevice, WithoutMemoryItSaysHowMuchThereIs) {
  try {
    Buffer::make(*device_, size_t(1) << 50);
    FAIL() << "there was memory";
  } catch (const DeviceError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("1125899906842624 bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("are free"), std::string::npos) << text;
  }
  EXPECT_EQ(content(*counting(10)).at(9), 9);
}

TEST_F(CudaDevice, WhatIsKeptMakesPlaceForOtherSizes) {
  const auto part = [](double share) { return size_t(double(CudaGpu::all()[0]->bytes()) * share); };
  Buffer::make(*device_, part(0.45));  // freed, and kept
  const Ref<Buffer> first = Buffer::make(*device_, part(0.4)),
                    second = Buffer::make(*device_, part(0.35));
  const std::string text = test::thrown<DeviceError>([&] { Buffer::make(*device_, part(0.4)); });
  EXPECT_NE(text.find(fmt::format("there is no memory for {} bytes: ", part(0.4))),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("are in use; on the device"), std::string::npos) << text;
  EXPECT_EQ(content(*counting(10)).at(9), 9);  // all else goes on
}

TEST_F(CudaDevice, WhatIsKeptMakesPlaceForCode) {
  if (!is_fake()) GTEST_SKIP() << "the memory of a GPU is not filled to the last byte";
  std::vector<Ref<Buffer>> held;
  for (size_t bytes = size_t(16) << 20; bytes >= 512; bytes /= 2) {
    try {
      while (true) held.push_back(Buffer::make(*device_, bytes));
    } catch (const DeviceError&) {
      continue;  // smaller ones may fit
    }
  }
  held.erase(held.begin());
  const Ref<Buffer> in = counting(100), out = Buffer::make(*device_, 400);
  run(*add_one(100, 0, "late"), out, in);
  EXPECT_EQ(content(*out).at(99), 100);
}

TEST_F(CudaDevice, GraphsFollowTheirMemory) {
  const auto program = add_one(1000, 0, "step");
  // 0 -> 1 -> 2 -> 1
  const std::vector<uint32_t> first{1, 0}, second{2, 1}, third{1, 2};
  const std::vector<RecordedCall> calls = {
      {program.get(), first, {}}, {program.get(), second, {}}, {program.get(), third, {}}};
  const std::unique_ptr<RecordedCalls> recording = device_->record(calls);
  ASSERT_NE(recording, nullptr);
  std::vector<Ref<Buffer>> held;
  for (int i = 0; i < 4; i++) {
    const Ref<Buffer> in = counting(1000 + i), out = Buffer::make(*device_, 4000 + size_t(i) * 512),
                      between = Buffer::make(*device_, 4000);
    held.insert(held.end(), {in, out, between});
    Buffer* const memory[] = {in.get(), out.get(), between.get()};
    recording->run(memory);
    recording->run(memory);
    EXPECT_EQ(content(*out).at(999), 1002);
    EXPECT_EQ(content(*out).at(0), 3);
  }
}

// In a process of its own: whether a driver lets it use the device again is the driver's to say.
TEST_F(CudaDevice, AKernelThatFailsIsNamedAndTheProcessGoesOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fail_and_go_on(), testing::ExitedWithCode(0), "");
}

// The tests above in another process, on two devices of the driver in tests/fake_cuda.
TEST(CudaWithoutGpu, IsAsWithOne) {
  if (is_fake()) GTEST_SKIP() << "it is this one";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::vector<std::string> environment = {"WEFT_FAKE_CUDA=1",
                                                "LD_LIBRARY_PATH=" WEFT_FAKE_CUDA_FOLDER};
  for (const char* reset : {"FAKE_NOTHING=1", "FAKE_CUDA_RESET=1"}) {
    std::vector<std::string> all = environment;
    all.emplace_back(reset);
    const ChildResult result =
        run_child({self, "--gtest_filter=CudaDevice.*"}, "/dev/null", all, 300);
    EXPECT_EQ(result.end, ChildResult::End::kExited);
    EXPECT_EQ(result.code, 0) << reset << "\n" << result.output;
    EXPECT_EQ(result.output.find("SKIPPED"), std::string::npos) << result.output;
  }
}

TEST_F(CudaDevice, AForkSaysThatItCannotUseIt) {
  const Ref<Buffer> buffer = counting(10);
  const pid_t child = fork();
  if (child == 0) {
    try {
      content(*buffer);
      _exit(1);
    } catch (const DeviceError& e) {
      _exit(std::string(e.what()).find("fork") != std::string::npos ? 0 : 2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content(*buffer).at(9), 9);
}

}  // namespace
}  // namespace weft
