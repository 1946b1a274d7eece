// Vectors keep what they hold as they move to huge pages and back.
#include "base/huge_vector.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

#include "base/huge_pages.h"

namespace weft {
namespace {

TEST(HugeVector, grows_into_huge_pages) {
  constexpr size_t count = 3 * kHugePage / sizeof(uint32_t);
  HugeVector<uint32_t> v;
  for (size_t i = 0; i < count; i++) v.push_back(uint32_t(i * 7));
  for (size_t i = 0; i < count; i++) ASSERT_EQ(v[i], uint32_t(i * 7));
  EXPECT_EQ(uintptr_t(v.data()) % kHugePage, 0u);
  v.resize(10);
  v.shrink_to_fit();
  for (size_t i = 0; i < 10; i++) EXPECT_EQ(v[i], uint32_t(i * 7));
}

TEST(HugeVector, swaps_and_moves) {
  HugeVector<uint64_t> large(kHugePage, 5), small{1, 2};
  const uint64_t* memory = large.data();
  large.swap(small);
  EXPECT_EQ(small.data(), memory);
  const HugeVector<uint64_t> moved = std::move(small);
  EXPECT_EQ(moved.data(), memory);
  EXPECT_EQ(moved.back(), 5u);
}

TEST(HugeVector, whole_pages) {
  EXPECT_EQ(huge_bytes(1), kHugePage);
  EXPECT_EQ(huge_bytes(kHugePage), kHugePage);
  EXPECT_EQ(huge_bytes(kHugePage + 1), 2 * kHugePage);
}

}  // namespace
}  // namespace weft
