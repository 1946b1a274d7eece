// OpenCL where there is a driver: memory and its end, copies, kernels that do not compile, code
// kept on disk, forks. Where there is none, what is said of it.
#include "runtime/opencl/opencl_device.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/ref.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/kernel_cache.h"
#include "runtime/program.h"

namespace weft {
namespace {

TEST(OpenCl, WhatIsMissingIsSaid) {
  if (!opencl_devices().empty()) GTEST_SKIP() << "there is a device";
  try {
    find_device("OPENCL");
    FAIL() << "it was found";
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find(opencl_missing()), std::string::npos) << e.what();
  }
}

class OpenClDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (opencl_devices().empty()) GTEST_SKIP() << opencl_missing();
    device = &find_device("OPENCL");
  }

  // out[i] = in[i] + addend
  std::shared_ptr<Program> add(int64_t size, int addend, const std::string& name) {
    Arena arena;
    const UOp r = range(arena, size, 0);
    const UOp out = define_global(arena, dtypes::int32, size, 0),
              in = define_global(arena, dtypes::int32, size, 1);
    const UOp value = load(index(in, r)) + addend;
    return device->compile(sink(end(index(out, r).assign(value), r)), name);
  }

  Ref<Buffer> numbers(std::span<const int32_t> values) {
    Ref<Buffer> buffer = Buffer::make(*device, values.size_bytes());
    buffer->copy_in(std::as_bytes(values));
    return buffer;
  }
  static std::vector<int32_t> read(const Buffer& buffer) {
    std::vector<int32_t> out(buffer.bytes() / sizeof(int32_t));
    buffer.copy_out(std::as_writable_bytes(std::span(out)));
    return out;
  }

  Device* device = nullptr;  // NOLINT(readability-identifier-naming)
};

TEST_F(OpenClDevice, IsDescribed) {
  EXPECT_NE(device->description().find("OpenCL"), std::string::npos);
  EXPECT_NE(device->description().find("MiB of memory"), std::string::npos);
}

TEST_F(OpenClDevice, ThereIsNoDevicePastTheLast) {
  EXPECT_THROW(find_device("OPENCL:99"), DeviceError);
}

TEST_F(OpenClDevice, LaunchesRunInOrder) {
  const std::vector<int32_t> first(1000, 5);
  const Ref<Buffer> a = numbers(first), b = Buffer::make(*device, first.size() * sizeof(int32_t));
  const std::shared_ptr<Program> program = add(1000, 1, "add_one");
  for (int k = 0; k < 50; k++) {
    Buffer* forth[] = {b.get(), a.get()};
    Buffer* back[] = {a.get(), b.get()};
    program->run(forth, {});
    program->run(back, {});
  }
  EXPECT_EQ(read(*a), std::vector<int32_t>(1000, 105));
  device->synchronize();
}

TEST_F(OpenClDevice, CopiesOfAllAndOfParts) {
  const Ref<Buffer> a = numbers(std::vector<int32_t>{1, 2, 3, 4}), b = Buffer::make(*device, 16);
  b->copy_from(*a);
  EXPECT_EQ(read(*b), (std::vector<int32_t>{1, 2, 3, 4}));
  int32_t two[2] = {};
  ASSERT_TRUE(device->copy_out_part(std::as_writable_bytes(std::span(two)), b->memory(), 4));
  EXPECT_EQ(two[0], 2);
  EXPECT_EQ(two[1], 3);
}

TEST_F(OpenClDevice, NothingIsMemoryToo) {
  const Ref<Buffer> none = Buffer::make(*device, 0);
  none->copy_in({});
  none->copy_out({});
}

TEST_F(OpenClDevice, TooMuchMemoryIsAnErrorWithSizes) {
  constexpr size_t much = size_t(1) << 50;
  try {
    device->allocate(much);
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find(std::to_string(much)), std::string::npos) << e.what();
  }
  const Ref<Buffer> after = numbers(std::vector<int32_t>{7});
  EXPECT_EQ(read(*after), std::vector<int32_t>{7});
}

TEST_F(OpenClDevice, WhatDoesNotCompileIsShown) {
  try {
    add(10, 1, "no-name");
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("no-name("), std::string::npos) << e.what();
  }
}

// What lies in the cache may be anything: of another driver, or cut off.
TEST_F(OpenClDevice, CodeOnDiskIsUsedAndMadeAnewWhenItIsDamaged) {
  const std::string before = config().cache_dir;
  const auto folder =
      std::filesystem::temp_directory_path() / ("weft_opencl_" + std::to_string(getpid()));
  config().cache_dir = folder.string();
  const Ref<Buffer> in = numbers(std::vector<int32_t>{1, 2}), out = Buffer::make(*device, 8);
  Buffer* arguments[] = {out.get(), in.get()};
  const auto check = [&] {
    add(2, 41, "kept")->run(arguments, {});
    EXPECT_EQ(read(*out), (std::vector<int32_t>{42, 43}));
  };
  check();
  EXPECT_EQ(kernel_cache()->counts().written, 1U);
  check();
  EXPECT_EQ(kernel_cache()->counts().hits, 1U);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
  }
  check();
  EXPECT_EQ(kernel_cache()->counts().written, 2U);
  config().cache_dir = before;
  std::filesystem::remove_all(folder);
}

TEST_F(OpenClDevice, AChildOfAForkGetsAnErrorAndDoesNotHang) {
  const Ref<Buffer> mine = numbers(std::vector<int32_t>{1});
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int failed = 0;
    try {
      read(*mine);
    } catch (const DeviceError&) {
      failed++;
    }
    try {
      add(3, 2, "in_a_child");
    } catch (const DeviceError&) {
      failed++;
    }
    _exit(failed == 2 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(*mine), std::vector<int32_t>{1});
}

}  // namespace
}  // namespace weft
