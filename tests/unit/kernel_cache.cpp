// What is kept on disk: whole or not at all, bounded, and never in the way.
#include "runtime/kernel_cache.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child_process.h"
#include "base/hash.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

Hash128 key_of(uint64_t i) { return {2 * i + 1, i * 0x9e3779b97f4a7c15ULL}; }

Bytes some_bytes(uint64_t seed, size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; i++) bytes[i] = std::byte(mix(seed, i));
  return bytes;
}

std::vector<fs::path> files_of(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

class KernelCacheTest : public testing::Test {
 protected:
  TempFolder temp_;
  std::string folder_ = temp_.path() + "/deep/cache";
};

TEST_F(KernelCacheTest, gives_back_what_was_put) {
  KernelCache cache(folder_, 1 << 20);
  EXPECT_EQ(cache.get(key_of(1)), std::nullopt);
  cache.put(key_of(1), some_bytes(1, 1000));
  cache.put(key_of(2), Bytes());
  EXPECT_EQ(cache.get(key_of(1)), some_bytes(1, 1000));
  EXPECT_EQ(cache.get(key_of(2)), Bytes());
  EXPECT_EQ(KernelCache(folder_, 1 << 20).get(key_of(1)), some_bytes(1, 1000));
  cache.put(key_of(1), some_bytes(7, 10));
  EXPECT_EQ(cache.get(key_of(1)), some_bytes(7, 10));
  cache.remove(key_of(1));
  EXPECT_EQ(cache.get(key_of(1)), std::nullopt);
  EXPECT_EQ(cache.counts().hits, 3U);
  EXPECT_EQ(cache.counts().misses, 2U);
}

// Cut, with a byte changed, of another key, of nothing: it is gone, and can be put anew.
TEST_F(KernelCacheTest, does_not_give_a_damaged_entry) {
  KernelCache cache(folder_, 1 << 20);
  const Bytes good = some_bytes(1, 300);
  cache.put(key_of(1), good);
  const fs::path path = files_of(folder_).at(0);
  std::string whole(size_t(fs::file_size(path)), '\0');
  std::ifstream(path, std::ios::binary).read(whole.data(), std::streamsize(whole.size()));
  const auto expect_gone = [&](std::string_view content) {
    std::ofstream(path, std::ios::binary).write(content.data(), std::streamsize(content.size()));
    EXPECT_EQ(cache.get(key_of(1)), std::nullopt);
    EXPECT_FALSE(fs::exists(path));
    cache.put(key_of(1), good);
    EXPECT_EQ(cache.get(key_of(1)), good);
  };
  for (size_t i = 0; i < whole.size(); i++) {
    std::string damaged = whole;
    damaged[i] = char(damaged[i] ^ 0x10);
    expect_gone(damaged);
  }
  for (const size_t size : {size_t(0), size_t(5), whole.size() - 1}) {
    expect_gone(std::string_view(whole).substr(0, size));
  }
  expect_gone(whole + "x");
  EXPECT_EQ(cache.counts().damaged, whole.size() + 4);
}

TEST_F(KernelCacheTest, drops_what_was_not_used_for_longest) {
  KernelCache cache(folder_, 64 << 10);
  for (uint64_t i = 0; i < 10; i++) {
    cache.put(key_of(i), some_bytes(i, 4000));
    // As if it were days ago, the first the longest.
    for (const fs::path& path : files_of(folder_)) {
      if (fs::last_write_time(path) > fs::file_time_type::clock::now() - std::chrono::hours(1)) {
        fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(100 - i));
      }
    }
  }
  EXPECT_TRUE(cache.get(key_of(0)));  // is now the newest
  for (uint64_t i = 10; i < 20; i++) cache.put(key_of(i), some_bytes(i, 4000));
  EXPECT_TRUE(cache.get(key_of(0)));
  EXPECT_FALSE(cache.get(key_of(1)));
  EXPECT_TRUE(cache.get(key_of(19)));
  EXPECT_GT(cache.counts().evicted, 0U);
  uintmax_t total = 0;
  for (const fs::path& path : files_of(folder_)) total += fs::file_size(path);
  EXPECT_LE(total, uintmax_t(64) << 10);
  cache.put(key_of(30), some_bytes(30, 100 << 10));  // more than there is room for
  EXPECT_FALSE(cache.get(key_of(30)));
}

TEST_F(KernelCacheTest, removes_what_others_left_half_written) {
  KernelCache cache(folder_, 4096);
  cache.put(key_of(1), some_bytes(1, 100));
  const fs::path whole = files_of(folder_).at(0), left = whole.string() + ".99.1.tmp";
  fs::copy_file(whole, left);
  fs::resize_file(left, 60);
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache.put(key_of(2), some_bytes(2, 1000));
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(KernelCacheTest, is_off_without_a_folder_or_bytes) {
  for (KernelCache* cache : {new KernelCache("", 1 << 20), new KernelCache(folder_, 0)}) {
    cache->put(key_of(1), some_bytes(1, 10));
    EXPECT_FALSE(cache->get(key_of(1)));
    delete cache;
  }
  EXPECT_FALSE(fs::exists(folder_));
}

// A file where the folder should be stands for every disk that does not want to: also for root.
TEST_F(KernelCacheTest, warns_once_when_it_cannot_write) {
  std::ofstream(temp_.path() + "/file") << "x";
  KernelCache cache(temp_.path() + "/file/cache", 1 << 20);
  testing::internal::CaptureStderr();
  for (uint64_t i = 0; i < 3; i++) {
    cache.put(key_of(i), some_bytes(i, 10));
    EXPECT_FALSE(cache.get(key_of(i)));
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("weft: compiled kernels are not kept: cannot make"), 0U) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
}

// Root may write anywhere: while this lives it is somebody else, who owns the folder.
class OrdinaryUser {
 public:
  explicit OrdinaryUser(const std::string& folder) {
    if (!was_root_) return;
    constexpr uid_t nobody = 65534;
    EXPECT_EQ(chown(folder.c_str(), nobody, gid_t(-1)), 0);
    EXPECT_EQ(seteuid(nobody), 0);
  }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;
  ~OrdinaryUser() {
    if (!was_root_) return;
    EXPECT_EQ(seteuid(0), 0);
  }

 private:
  bool was_root_ = geteuid() == 0;
};

TEST_F(KernelCacheTest, reads_what_it_may_not_write) {
  const OrdinaryUser user(temp_.path());
  KernelCache(folder_, 1 << 20).put(key_of(1), some_bytes(1, 10));
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (entry.is_directory()) fs::permissions(entry, fs::perms(0500));
  }
  fs::permissions(folder_, fs::perms(0500));
  KernelCache cache(folder_, 1 << 20);
  testing::internal::CaptureStderr();
  cache.put(key_of(2), some_bytes(2, 10));
  cache.put(key_of(3), some_bytes(3, 10));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
  EXPECT_TRUE(cache.get(key_of(1)));
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (entry.is_directory()) fs::permissions(entry, fs::perms(0700));
  }
  fs::permissions(folder_, fs::perms(0700));
}

// Processes that put and get the same few keys, with eviction going on: every answer is right.
TEST_F(KernelCacheTest, serves_many_processes) {
  std::vector<int> children;
  for (uint64_t child = 0; child < 4; child++) {
    const int pid = fork();
    if (pid == 0) {
      KernelCache cache(folder_, 40000);
      bool is_right = true;
      for (uint64_t i = 0; i < 400; i++) {
        const uint64_t k = (i * (child + 3)) % 16;
        const std::optional<Bytes> found = cache.get(key_of(k));
        if (found && *found != some_bytes(k, 3000 + k)) is_right = false;
        if (!found) cache.put(key_of(k), some_bytes(k, 3000 + k));
      }
      is_right = is_right && cache.counts().damaged == 0;
      _exit(is_right ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const int pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace weft
