// Caches share one bound: the least recently used entry of all goes, and none that is in use.
#include "base/cache_budget.h"

#include <cstddef>
#include <cstdint>
#include <memory>

#include <gtest/gtest.h>

#include "base/config.h"
#include "base/hash.h"
#include "tests/unit/tensor_helpers.h"

namespace weft {
namespace {

// Entries only claim their size. That of a unit makes what other caches hold, or let go of
// meanwhile, negligible.
constexpr size_t kUnit = size_t(1) << 40;

Hash128 key(uint64_t n) { return mix(Hash128{}, n); }

class CacheBudget : public testing::Test {
 protected:
  CacheBudget() { drop_cached(); }
  ~CacheBudget() override { drop_cached(); }

  using Cache = LruCache<const int>;
  static Cache& first() {
    static auto& cache = *new Cache("first of a test");
    return cache;
  }
  static Cache& second() {
    static auto& cache = *new Cache("second of a test");
    return cache;
  }
  static void add(Cache& cache, uint64_t n, size_t units) {
    cache.add(key(n), std::make_shared<const int>(int(n)), units * kUnit);
  }

  test::Setting<int64_t> bound_{config().most_cached_bytes, int64_t(101 * kUnit)};
};

TEST_F(CacheBudget, TheOldestOfAllGoes) {
  add(first(), 1, 40);
  add(second(), 2, 40);
  EXPECT_NE(first().find(key(1)), nullptr);  // used again: now that of the other one is older
  add(second(), 3, 40);
  EXPECT_NE(first().find(key(1)), nullptr);
  EXPECT_EQ(second().find(key(2)), nullptr);
  EXPECT_NE(second().find(key(3)), nullptr);
  EXPECT_EQ(first().bytes() + second().bytes(), 80 * kUnit);
}

TEST_F(CacheBudget, WhatIsInUseStays) {
  add(first(), 1, 60);
  const std::shared_ptr<const int> held = first().find(key(1));
  add(first(), 2, 60);
  EXPECT_NE(first().find(key(1)), nullptr);
  add(first(), 3, 30);  // 2 is the oldest that nobody holds
  EXPECT_EQ(first().find(key(2)), nullptr);
  EXPECT_NE(first().find(key(1)), nullptr);
  EXPECT_EQ(*held, 1);
}

TEST_F(CacheBudget, AnEntryThatGrowsIsCounted) {
  add(first(), 1, 10);
  add(first(), 2, 10);
  first().set_bytes(key(2), 95 * kUnit);
  EXPECT_EQ(first().find(key(1)), nullptr);
  EXPECT_EQ(first().bytes(), 95 * kUnit);
}

TEST_F(CacheBudget, TheFirstOfTwoThreadsWins) {
  add(first(), 1, 10);
  const auto other = first().add(key(1), std::make_shared<const int>(7), 10 * kUnit);
  EXPECT_EQ(*other, 1);
  EXPECT_EQ(first().bytes(), 10 * kUnit);
}

}  // namespace
}  // namespace weft
