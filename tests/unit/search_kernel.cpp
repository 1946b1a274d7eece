// What a search found is found again on disk, whatever happened to it there; what candidates run
// on.
#include "runtime/search_kernel.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/hash.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/parse.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/kernel_cache.h"
#include "runtime/program.h"
#include "runtime/time_candidates.h"
#include "schedule/schedule_cache.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/tensor.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// Takes the longer the shorter its list is, and looks at its memory.
class FakeProgram : public Program {
 public:
  explicit FakeProgram(size_t opts) : nanoseconds_(std::max<uint64_t>(12000 / (1 + opts), 3000)) {}
  void run(std::span<Buffer* const> arguments, std::span<const int64_t>) override {
    for (const Buffer* b : arguments) {
      ASSERT_EQ(uintptr_t(b->memory()) % 64, 0U);
      ASSERT_EQ(static_cast<const char*>(b->memory())[b->bytes() - 1], 0);
    }
    const uint64_t begin = now_ns();
    while (now_ns() - begin < nanoseconds_) continue;
  }

 private:
  uint64_t nanoseconds_;
};

class SearchKernel : public testing::Test {
 protected:
  OptList search(uint64_t machine = 1, size_t width = 1) {
    const KernelSearch settings{
        .device = find_device("CPU"),
        .target = target_,
        .machine = {machine, 0},
        .width = width,
        .compile_threads = 2,
        .compile =
            [&](UOp, const OptList& opts) {
              compiled_++;
              return std::make_shared<FakeProgram>(opts.size());
            },
    };
    return searched_opts(ast_, "fake", settings, cache_);
  }
  bool searches(uint64_t machine = 1, size_t width = 1) {
    const size_t before = compiled_;
    search(machine, width);
    return compiled_ != before;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      if (entry.is_regular_file()) out.push_back(entry.path());
    }
    return out;
  }
  void damage(std::streamoff at) const {
    for (const fs::path& path : files()) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(at);
      file.write("damage", 6);
    }
  }
  // Writes a whole entry in the place of the one that there is.
  void replace(std::string_view text) {
    for (const fs::path& path : files()) {
      Hash128 key;
      std::ifstream file(path, std::ios::binary);
      file.seekg(8);
      file.read(reinterpret_cast<char*>(&key), sizeof key);
      cache_.put(key, std::as_bytes(std::span(text)));
    }
  }

  static UOp kernel_of(Arena& arena, const Tensor& tensor) {
    clear_schedule_cache();  // else sizes that differ from earlier ones would become variables
    return parse(arena, tensor.schedule().back().graph);
  }

  Arena arena_;
  UOp ast_ = kernel_of(arena_, test::counted({64, 64}) + 1);
  const Target target_{.name = "test"};
  const TempFolder folder_;
  KernelCache cache_{folder_.path() + "/cache", 1 << 20};
  std::atomic<size_t> compiled_ = 0;
  const test::Setting<int> limit_{config().beam_seconds, 2};
};

TEST_F(SearchKernel, is_remembered) {
  const OptList found = search();
  EXPECT_GT(compiled_, 20U);
  const size_t before = compiled_;
  EXPECT_EQ(search(), found);
  EXPECT_EQ(compiled_, before);
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(SearchKernel, is_another_for_another_machine_or_width) {
  search();
  EXPECT_TRUE(searches(2));
  EXPECT_TRUE(searches(1, 2));
  EXPECT_FALSE(searches(1, 1));
}

TEST_F(SearchKernel, survives_damage) {
  search();
  for (const std::streamoff at : {0, 10, 40, 50}) {
    damage(at);
    EXPECT_TRUE(searches()) << at;
    EXPECT_FALSE(searches()) << at;
  }
}

// Whole on disk, but of no use.
TEST_F(SearchKernel, survives_other_entries) {
  search();
  for (const char* text : {"", "weft", "weft beam\nVECTOR(", "weft beam\nUNROLL(0, 4)",
                           "weft beam\nVECTOR(77, 4)", "something else\nVECTOR(0, 16)"}) {
    replace(text);
    EXPECT_TRUE(searches()) << text;
    EXPECT_FALSE(searches()) << text;
  }
  replace("weft beam\nVECTOR(0, 4)");
  EXPECT_EQ(print(search()), "VECTOR(0, 4)");
  replace("weft beam\n");
  EXPECT_EQ(print(search()), "");
}

TEST_F(SearchKernel, of_too_much_memory_is_none) {
  const Tensor huge = Tensor::full({int64_t(1) << 44}, 1.0).contiguous() + 1;
  ast_ = kernel_of(arena_, huge);
  search();
  EXPECT_EQ(compiled_, 0U);
}

// b[i + offset] = 0 for i in 0 .. n-1, both variables.
constexpr const char* kSymbolic = R"(
%0 = CONST index 0
%1 = CONST index 1000000
%2 = CONST index 1
%3 = VARIABLE index (%2, %1) "n"
%4 = VARIABLE index (%0, %1) "offset"
%5 = DEFINE_GLOBAL ptr<float32, global> (%3) 0
%6 = RANGE index (%3) 0:loop
%7 = ADD index (%6, %4)
%8 = INDEX ptr<float32, global> (%5, %7)
%9 = CONST float32 0.0
%10 = STORE void (%8, %9)
%11 = END void (%10, %6)
%12 = SINK void (%11)
)";

TEST(KernelArguments, have_room_for_every_access) {
  Arena arena;
  const UOp ast = parse(arena, kSymbolic);
  const std::optional<KernelArguments> all = arguments_for(ast, 1 << 30);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->variables, (std::vector<int64_t>{1000000, 1000000}));
  EXPECT_EQ(all->bytes, (std::vector<size_t>{4 * 2000000}));
}

TEST(KernelArguments, are_smaller_where_memory_is) {
  Arena arena;
  const UOp ast = parse(arena, kSymbolic);
  const std::optional<KernelArguments> some = arguments_for(ast, 1999999);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->variables, (std::vector<int64_t>{125000, 125000}));
  EXPECT_EQ(some->bytes, (std::vector<size_t>{4 * 250000}));
  EXPECT_FALSE(arguments_for(ast, 3));
}

}  // namespace
}  // namespace weft
