// The cache on disk uses nothing that another user could have written, and touches nothing that it
// did not write.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child_process.h"
#include "base/hash.h"
#include "runtime/kernel_cache.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr uid_t kNobody = 65534;
constexpr int64_t kMuch = int64_t(1) << 20;

Hash128 key_of(uint64_t i) { return {i * 0x9e3779b97f4a7c15ULL, 64 * i}; }

Bytes some_bytes(uint64_t seed, size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; i++) bytes[i] = std::byte(mix(seed, i));
  return bytes;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t lines_of(const std::string& text) { return size_t(std::ranges::count(text, '\n')); }

class PrivateCache : public testing::Test {
 protected:
  // One entry, in a folder of the cache's own.
  fs::path put_one() {
    KernelCache(folder_, kMuch).put(key_of(1), some_bytes(1, 300));
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file()) return entry.path();
    }
    return {};
  }
  // The entry is not given, a new one not kept, and there is one warning with this in it.
  void expect_refused(const std::string& why) const {
    testing::internal::CaptureStderr();
    KernelCache cache(folder_, kMuch);
    for (int i = 0; i < 3; i++) EXPECT_FALSE(cache.get(key_of(1)));
    cache.put(key_of(1), some_bytes(2, 10));
    EXPECT_FALSE(cache.get(key_of(1)));
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(why), std::string::npos) << said;
    EXPECT_EQ(lines_of(said), 1U) << said;
  }
  void expect_used() const {
    testing::internal::CaptureStderr();
    EXPECT_EQ(KernelCache(folder_, kMuch).get(key_of(1)), some_bytes(1, 300));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  }

  TempFolder temp_;
  std::string folder_ = temp_.path() + "/deep/cache";
};

TEST_F(PrivateCache, makes_folders_and_files_for_the_user_alone) {
  const mode_t before = umask(0);
  const fs::path entry = put_one();
  umask(before);
  for (fs::path path = entry; path != temp_.path(); path = path.parent_path()) {
    struct stat info{};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, path == entry ? 0600U : 0700U) << path;
  }
  expect_used();
}

TEST_F(PrivateCache, is_not_used_where_others_may_write) {
  const fs::path entry = put_one();
  for (fs::path path = entry; path != temp_.path().substr(0, temp_.path().rfind('/'));
       path = path.parent_path()) {
    const fs::perms before = fs::status(path).permissions();
    fs::permissions(path, fs::perms(0777));
    expect_refused("everyone may write there");
    fs::permissions(path, fs::perms(0770));
    expect_refused("its group may write there");
    fs::permissions(path, before);
    expect_used();
  }
}

// As /tmp is: nobody can exchange what others have there.
TEST_F(PrivateCache, is_used_below_a_sticky_folder) {
  put_one();
  fs::permissions(temp_.path(), fs::perms(01777));
  fs::permissions(folder_, fs::perms(01777));
  expect_used();
  fs::permissions(folder_ + "/entries", fs::perms(01777));
  expect_refused("everyone may write there");
}

TEST_F(PrivateCache, is_not_used_where_it_belongs_to_others) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give folders away";
  const fs::path entry = put_one();
  for (fs::path path = entry; path != temp_.path().substr(0, temp_.path().rfind('/'));
       path = path.parent_path()) {
    ASSERT_EQ(chown(path.c_str(), kNobody, gid_t(-1)), 0);
    expect_refused("it belongs to user 65534");
    ASSERT_EQ(chown(path.c_str(), 0, gid_t(-1)), 0);
    expect_used();
  }
}

TEST_F(PrivateCache, does_not_follow_or_wait_for_what_is_not_a_file) {
  const fs::path entry = put_one();
  const fs::path elsewhere = temp_.path() + "/elsewhere";
  fs::rename(entry, elsewhere);
  const std::string before = content_of(elsewhere);

  fs::create_symlink(elsewhere, entry);
  expect_refused("it is a link");
  fs::remove(entry);

  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  expect_refused("it is not a regular file");
  fs::remove(entry);

  fs::create_directory(entry);
  std::ofstream(entry / "inside") << "x";
  expect_refused("it is not a regular file");
  EXPECT_EQ(content_of(entry / "inside"), "x");
  fs::remove_all(entry);
  EXPECT_EQ(content_of(elsewhere), before);
}

// Past the bound it is the cache's own entries that go.
TEST_F(PrivateCache, leaves_files_of_others_alone) {
  const fs::path entry = put_one();
  const std::string name = entry.filename().string(), other = "a" + name.substr(1),
                    temp = name + ".99.1.tmp";
  std::map<fs::path, std::string> files;
  const auto add = [&](const fs::path& path, size_t bytes) {
    fs::create_directories(path.parent_path());
    const std::string content(bytes, 'u');
    std::ofstream(path) << content;
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1000));
    files[path] = content;
  };
  for (const fs::path& folder : {fs::path(folder_), entry.parent_path(), fs::path(folder_) / "ab",
                                 entry.parent_path() / "deep" / "er"}) {
    for (const char* each :
         {"notes.txt", "thesis.tmp", ".tmp", "a.tmp99.1", "0123456789", "x.weft"})
      add(folder / each, 3000);
    add(folder / other, 3000);
    add(folder / ("b" + temp.substr(1)), 3000);
    add(folder / (other + ".99.1.tmp.txt"), 3000);
    add(folder / (other + "x"), 3000);
    if (folder != entry.parent_path()) add(folder / name, 3000);
  }
  // An entry, under the name of another.
  const fs::path copy = entry.parent_path() / ("cc" + name.substr(2));
  files[copy] = content_of(entry);
  fs::copy_file(entry, copy);
  const fs::path outside = temp_.path() + "/outside";
  add(outside, 3000);
  const fs::path link = entry.parent_path() / ("d" + name.substr(1));
  fs::create_symlink(outside, link);

  KernelCache cache(folder_, 20000);
  for (uint64_t i = 2; i < 40; i++) cache.put(key_of(i), some_bytes(i, 2000));
  EXPECT_GT(cache.counts().evicted, 10U);
  EXPECT_FALSE(fs::exists(entry));
  for (const auto& [path, content] : files) EXPECT_EQ(content_of(path), content) << path;
  EXPECT_TRUE(fs::is_symlink(link));
}

// The folder goes while the process lives, and comes back as somebody else's.
TEST_F(PrivateCache, looks_again_when_its_folder_has_gone) {
  put_one();
  KernelCache cache(folder_, kMuch);
  EXPECT_TRUE(cache.get(key_of(1)));
  fs::remove_all(folder_);
  EXPECT_FALSE(cache.get(key_of(1)));
  cache.put(key_of(2), some_bytes(2, 10));
  EXPECT_TRUE(cache.get(key_of(2)));
  fs::remove_all(folder_);
  fs::create_directories(folder_);
  fs::permissions(folder_, fs::perms(0777));
  testing::internal::CaptureStderr();
  cache.put(key_of(3), some_bytes(3, 10));
  EXPECT_FALSE(cache.get(key_of(3)));
  EXPECT_EQ(lines_of(testing::internal::GetCapturedStderr()), 1U);
}

}  // namespace
}  // namespace weft
