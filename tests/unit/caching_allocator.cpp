// Freed memory is kept by size, bounded, and given back before an allocation fails.
#include "runtime/caching_allocator.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/error.h"
#include "tests/unit/tensor_helpers.h"

namespace weft {
namespace {

constexpr int64_t kMiB = int64_t(1) << 20;

TEST(CachingAllocator, aligns) {
  CachingAllocator allocator("test", 1024 * kMiB, 1024 * kMiB);
  for (const size_t bytes : {0, 1, 63, 64, 65, 1000, 4096, 1 << 20, (4 << 20) + 5}) {
    void* memory = allocator.allocate(bytes);
    std::memset(memory, 1, bytes);
    const auto alignment = uintptr_t(bytes >= size_t(4 * kMiB) ? 2 * kMiB : 64);
    EXPECT_EQ(uintptr_t(memory) % alignment, 0U) << bytes;
    allocator.free(memory, bytes);
  }
  EXPECT_EQ(allocator.used_bytes(), 0);
}

TEST(CachingAllocator, gives_the_same_memory_again_without_page_faults) {
  CachingAllocator allocator("test", 1024 * kMiB, 1024 * kMiB);
  const size_t bytes = size_t(8 * kMiB) + 100;
  void* first = allocator.allocate(bytes);
  std::memset(first, 1, bytes);
  allocator.free(first, bytes);
  EXPECT_GE(allocator.kept_bytes(), int64_t(bytes));
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  void* second = allocator.allocate(bytes + 50);  // nearly the same size
  std::memset(second, 2, bytes);
  getrusage(RUSAGE_THREAD, &after);
  EXPECT_EQ(second, first);
  EXPECT_EQ(after.ru_minflt, before.ru_minflt);
  EXPECT_EQ(allocator.kept_bytes(), 0);
  allocator.free(second, bytes + 50);
}

TEST(CachingAllocator, keeps_no_more_than_its_bound_and_the_newest) {
  CachingAllocator allocator("test", 1024 * kMiB, 4 * kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; i++) blocks.push_back(allocator.allocate(size_t(kMiB)));
  for (void* block : blocks) allocator.free(block, size_t(kMiB));
  EXPECT_EQ(allocator.kept_bytes(), 4 * kMiB);
  void* newest = allocator.allocate(size_t(kMiB));
  EXPECT_EQ(newest, blocks.back());
  allocator.free(newest, size_t(kMiB));
  allocator.release_kept();
  EXPECT_EQ(allocator.kept_bytes(), 0);
}

TEST(CachingAllocator, says_what_is_in_use_when_there_is_no_more) {
  CachingAllocator allocator("test", 8 * kMiB, 8 * kMiB);
  void* half = allocator.allocate(size_t(4 * kMiB));
  EXPECT_EQ(test::thrown<DeviceError>([&] { allocator.allocate(size_t(5 * kMiB)); }),
            "[test] there is no memory for 5242880 bytes: 4194304 of 8388608 are in use");
  EXPECT_THROW(allocator.allocate(SIZE_MAX), DeviceError);
  EXPECT_THROW(allocator.allocate(SIZE_MAX / 2), DeviceError);
  EXPECT_EQ(allocator.used_bytes(), 4 * kMiB);
  allocator.free(half, size_t(4 * kMiB));
  // What is kept makes room for another size.
  void* most = allocator.allocate(size_t(7 * kMiB));
  EXPECT_EQ(allocator.kept_bytes(), 0);
  allocator.free(most, size_t(7 * kMiB));
}

// Counts what it has given away, and has `most` blocks.
class CountingSource : public MemorySource {
 public:
  explicit CountingSource(int most) : most_(most) {}
  void* allocate(size_t bytes) override {
    if (given_ == most_) return nullptr;
    given_++;
    return ::operator new(bytes);
  }
  void free(void* memory, size_t) noexcept override {
    given_--;
    ::operator delete(memory);
  }
  std::string state() const override { return "; the rest is silence"; }
  int given() const { return given_; }

 private:
  int most_, given_ = 0;
};

TEST(CachingAllocator, takes_memory_of_any_source_and_gives_all_of_it_back) {
  CountingSource source(2);
  {
    CachingAllocator allocator("test", 1024 * kMiB, 1024 * kMiB, source);
    void* a = allocator.allocate(100);
    void* b = allocator.allocate(5000);
    EXPECT_EQ(test::thrown<DeviceError>([&] { allocator.allocate(9); }),
              "[test] there is no memory for 9 bytes: 5248 of 1073741824 are in use; the rest is "
              "silence");
    allocator.free(a, 100);
    EXPECT_EQ(source.given(), 2);  // kept,
    void* c = allocator.allocate(9);
    EXPECT_EQ(source.given(), 2);  // and given back for another size
    allocator.free(b, 5000);
    allocator.free(c, 9);
  }
  EXPECT_EQ(source.given(), 0);
}

TEST(CachingAllocator, serves_threads) {
  CachingAllocator allocator("test", 1024 * kMiB, 16 * kMiB);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; t++) {
    threads.emplace_back([&allocator, t] {
      std::mt19937 random(t);
      std::vector<std::pair<unsigned char*, size_t>> mine;
      for (int i = 0; i < 2000; i++) {
        const size_t bytes = random() % 20000;
        auto* memory = static_cast<unsigned char*>(allocator.allocate(bytes));
        std::memset(memory, int(t), bytes);
        mine.emplace_back(memory, bytes);
        if (mine.size() < 20) continue;
        const auto [old, size] = mine[random() % mine.size()];
        for (size_t at = 0; at < size; at++) ASSERT_EQ(old[at], t);
        std::erase(mine, std::pair(old, size));
        allocator.free(old, size);
      }
      for (const auto& [memory, bytes] : mine) allocator.free(memory, bytes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.used_bytes(), 0);
  EXPECT_LE(allocator.kept_bytes(), 16 * kMiB);
}

}  // namespace
}  // namespace weft
