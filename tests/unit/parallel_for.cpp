// Every index once, on several threads where there are several, and never a hang.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "runtime/cpu/parallel.h"
#include "tests/unit/tensor_helpers.h"

namespace weft {
namespace {

struct Seen {
  explicit Seen(int64_t count) : times(size_t(count)) {}
  std::vector<std::atomic<int>> times;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> pieces = 0;
  bool nests = false;

  static void body(const void* context, int64_t first, int64_t last) {
    auto& self = *static_cast<Seen*>(const_cast<void*>(context));
    self.pieces++;
    {
      const std::lock_guard lock(self.mutex);
      self.threads.insert(std::this_thread::get_id());
    }
    if (self.nests) {
      Seen inner(100);
      parallel_for(100, &Seen::body, &inner);
      EXPECT_EQ(inner.pieces, 1);
    }
    for (int64_t i = first; i < last; i++) self.times[size_t(i)]++;
  }
  bool is_each_once() const {
    for (const auto& t : times) {
      if (t != 1) return false;
    }
    return true;
  }
};

void expect_covered(int64_t count) {
  Seen seen(count);
  parallel_for(count, &Seen::body, &seen);
  EXPECT_TRUE(seen.is_each_once()) << count;
}

TEST(ParallelFor, covers_every_index_once) {
  for (const int64_t count : {0, 1, 2, 3, 7, 8, 9, 63, 64, 1000, 100003}) {
    for (const int threads : {0, 1, 2, 3, 16}) {
      const test::Setting limit(config().threads, threads);
      expect_covered(count);
    }
  }
}

TEST(ParallelFor, uses_as_many_threads_as_it_may) {
  const test::Setting limit(config().threads, 3);
  EXPECT_EQ(parallel_threads(), 3U);
  Seen seen(1000);
  parallel_for(1000, &Seen::body, &seen);
  EXPECT_EQ(seen.pieces, 12);
  EXPECT_LE(seen.threads.size(), 3U);
  const test::Setting serial(config().threads, 1);
  Seen alone(1000);
  parallel_for(1000, &Seen::body, &alone);
  EXPECT_EQ(alone.pieces, 1);
  EXPECT_TRUE(alone.threads.contains(std::this_thread::get_id()));
}

TEST(ParallelFor, is_serial_inside_of_itself) {
  const test::Setting limit(config().threads, 2);
  Seen seen(8);
  seen.nests = parallel_threads() > 1;
  parallel_for(8, &Seen::body, &seen);
  EXPECT_TRUE(seen.is_each_once());
}

TEST(ParallelFor, serves_threads_at_once) {
  const test::Setting limit(config().threads, 2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([] {
      for (int i = 0; i < 50; i++) expect_covered(1000);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ParallelFor, is_serial_in_a_child) {
  const test::Setting limit(config().threads, 2);
  expect_covered(1000);  // the runtime has threads now
  const int pid = fork();
  if (pid == 0) {
    Seen seen(1000);
    parallel_for(1000, &Seen::body, &seen);
    _exit(seen.is_each_once() && seen.pieces == 1 && parallel_threads() == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  expect_covered(1000);
}

}  // namespace
}  // namespace weft
