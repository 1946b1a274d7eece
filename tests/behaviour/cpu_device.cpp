// Tensors on the CPU: compiled once and kept on disk, right after every failure, in children too.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child_process.h"
#include "base/config.h"
#include "base/error.h"
#include "base/hash.h"
#include "runtime/cpu/compile_c.h"
#include "runtime/cpu/llvm_library.h"
#include "runtime/kernel_cache.h"
#include "runtime/opencl/opencl_device.h"
#include "schedule/schedule_cache.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/counters.h"
#include "weft/dtype.h"
#include "weft/scheduled_kernel.h"
#include "weft/tensor.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// A folder of its own for compiled kernels, and schedules and programs made anew.
class CpuDevice : public testing::TestWithParam<const char*> {
 protected:
  CpuDevice() { clear_schedule_cache(); }
  ~CpuDevice() override { clear_schedule_cache(); }
  void SetUp() override {
    const bool is_c = device() == "CPU:C";
    if (is_c ? !has_c_compiler() : !has_llvm()) GTEST_SKIP() << "not installed";
  }

  static std::string device() { return GetParam(); }
  static Tensor numbers(const test::Floats& elements) {
    return Tensor::from(std::span<const float>(elements), {int64_t(elements.size())}, device());
  }
  // A kernel that differs for each seed.
  static test::Floats scaled(int seed) {
    return (numbers({1, 2, 3}) * double(seed) + 1).data<float>();
  }
  static test::Floats expected(int seed) {
    const auto s = float(seed);
    return {s + 1, 2 * s + 1, 3 * s + 1};
  }
  // Nothing of earlier realises is in this process.
  static void forget() { clear_schedule_cache(); }
  static KernelCache::Counts counts() { return kernel_cache()->counts(); }

  TempFolder folder_;
  std::string cache_ = folder_.path() + "/cache";
  test::Setting<std::string> setting_{config().cache_dir, cache_};
  test::Setting<int64_t> bound_{config().most_cache_bytes, int64_t(1) << 30};
};

TEST_P(CpuDevice, computes) {
  const Tensor x = numbers({1, 2, 3, 4});
  EXPECT_EQ((x * 2 + x).data<float>(), (test::Floats{3, 6, 9, 12}));
  EXPECT_EQ(x.sum().item<float>(), 10);
}

TEST_P(CpuDevice, shows_the_source) {
  const std::vector<ScheduledKernel> kernels = (numbers({1, 2}) + 1).schedule();
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_NE(kernels[0].source.find(kernels[0].name), std::string::npos) << kernels[0].source;
}

TEST_P(CpuDevice, compiles_once_and_finds_it_on_disk) {
  EXPECT_EQ(scaled(3), expected(3));
  const uint64_t written = counts().written;
  EXPECT_GT(written, 0U);
  forget();
  EXPECT_EQ(scaled(3), expected(3));
  EXPECT_EQ(counts().written, written);
  EXPECT_EQ(counts().hits, written);
}

// Slices of one memory are one kernel, wherever they begin.
TEST_P(CpuDevice, lowers_a_kernel_once_for_all_places) {
  const Tensor x = Tensor::arange(40.0).to(device()).realize();
  const auto part = [&](int64_t begin) { return (x.shrink({{begin, begin + 3}}) * 3 + 1); };
  EXPECT_EQ(part(0).data<float>(), (test::Floats{1, 4, 7}));
  EXPECT_EQ(x.sum().item<float>(), 780);
  const uint64_t lowered = counters().lowered;
  Tensor other = part(7), sum = x.sum();
  Tensor::realize(std::vector<Tensor*>{&other, &sum});  // a schedule of another family
  EXPECT_EQ(other.data<float>(), (test::Floats{22, 25, 28}));
  EXPECT_EQ(counters().lowered, lowered);
}

TEST_P(CpuDevice, rebuilds_what_is_damaged_on_disk) {
  EXPECT_EQ(scaled(4), expected(4));
  const uint64_t written = counts().written;
  for (const auto& entry : fs::recursive_directory_iterator(cache_)) {
    if (!entry.is_regular_file()) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(200);
    file.write("damage", 6);
  }
  forget();
  EXPECT_EQ(scaled(4), expected(4));
  EXPECT_EQ(counts().damaged, written);
  EXPECT_EQ(counts().written, 2 * written);
}

// Whole on disk, but no object: what another version might have left.
TEST_P(CpuDevice, rebuilds_what_is_no_object) {
  EXPECT_EQ(scaled(5), expected(5));
  std::vector<Hash128> keys;
  for (const auto& entry : fs::recursive_directory_iterator(cache_)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    file.seekg(8);
    file.read(reinterpret_cast<char*>(&keys.emplace_back()), sizeof(Hash128));
  }
  for (const Hash128& key : keys) kernel_cache()->put(key, std::vector<std::byte>(300));
  forget();
  EXPECT_EQ(scaled(5), expected(5));
  EXPECT_EQ(counts().written, 3 * keys.size());
}

TEST_P(CpuDevice, goes_on_without_a_disk) {
  std::ofstream(folder_.path() + "/file") << "x";
  const test::Setting broken(config().cache_dir, folder_.path() + "/file/cache");
  testing::internal::CaptureStderr();
  EXPECT_EQ(scaled(6), expected(6));
  EXPECT_EQ(scaled(7), expected(7));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
}

TEST_P(CpuDevice, says_when_there_is_no_memory_and_goes_on) {
  Tensor x = numbers({1, 2, 3});
  const int64_t elements = int64_t(1) << 50;
  Tensor huge = Tensor::full({elements}, 1.0, dtypes::float32, device());
  const std::string said = test::thrown<DeviceError>([&] { huge.contiguous().realize(); });
  EXPECT_EQ(said.find("[CPU] there is no memory for 4503599627370496 bytes: "), 0U) << said;
  EXPECT_EQ((x + 1).data<float>(), (test::Floats{2, 3, 4}));
}

TEST_P(CpuDevice, runs_in_a_child_after_running_here) {
  EXPECT_EQ(scaled(8), expected(8));
  const int pid = fork();
  if (pid == 0) {
    const bool is_right = scaled(8) == expected(8) && scaled(9) == expected(9);
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(scaled(10), expected(10));
}

// Forks at any moment of what other threads do, where other devices wait for forks, too.
TEST_P(CpuDevice, runs_in_children_of_a_busy_process) {
  EXPECT_EQ(scaled(20), expected(20));
  opencl_devices();
  std::atomic<bool> is_over = false;
  std::thread busy([&] {
    for (int i = 0; !is_over; i++) EXPECT_EQ(scaled(20 + i % 5), expected(20 + i % 5));
  });
  for (int i = 0; i < 20; i++) {
    const int pid = fork();
    if (pid == 0) _exit(scaled(20 + i % 5) == expected(20 + i % 5) ? 0 : 1);
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  is_over = true;
  busy.join();
}

TEST_P(CpuDevice, compiles_in_threads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([t] {
      for (int i = 0; i < 3; i++) EXPECT_EQ(scaled(100 + t * 3 + i), expected(100 + t * 3 + i));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(All, CpuDevice, testing::Values("CPU", "CPU:LLVM", "CPU:C"),
                         [](const auto& p) {
                           std::string name = p.param;
                           std::erase(name, ':');
                           return name;
                         });

// A compiler that fails or hangs: every tensor is as it was, and the next realise works.
class CpuCompilerFails : public testing::TestWithParam<const char*> {};

TEST_P(CpuCompilerFails, and_the_next_realise_works) {
  if (!has_c_compiler()) GTEST_SKIP() << "no C compiler";
  const TempFolder folder;
  const std::string script = folder.path() + "/cc";
  std::ofstream(script) << "#!/bin/sh\n" << GetParam() << "\n";
  chmod(script.c_str(), 0755);
  const test::Setting cache(config().cache_dir, folder.path() + "/cache");
  const test::Setting limit(config().compile_seconds, 1);
  clear_schedule_cache();
  const test::Floats elements{1, 2, 3};
  Tensor x = Tensor::from(std::span<const float>(elements), {3}, "CPU:C");
  x.at({Slice{0, 1}}).update(Op::ADD, 10);
  Tensor y = x * 2;
  {
    const test::Setting cc(config().c_compiler, script);
    EXPECT_EQ(test::thrown<CompileError>([&] { y.realize(); }).find("[CPU:C] "), 0U);
    EXPECT_FALSE(y.is_realized());
  }
  const test::Setting longer(config().compile_seconds, 60);
  EXPECT_EQ(y.data<float>(), (test::Floats{22, 4, 6}));
  EXPECT_EQ(x.data<float>(), (test::Floats{11, 2, 3}));
}

INSTANTIATE_TEST_SUITE_P(All, CpuCompilerFails,
                         testing::Values("exit 1", "sleep 1000", "kill -9 $$", "exit 0"));

}  // namespace
}  // namespace weft
