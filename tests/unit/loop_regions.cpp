// Views of memory as numbers, and when their elements are written.
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "schedule/roll/region.h"
#include "schedule/roll/write_times.h"

namespace weft {
namespace {

Region row(int64_t first, int64_t size, int64_t stride = 1) {
  Arena arena;
  const UOp memory = buffer(arena, dtypes::float32, 64, "CPU", 0);
  Region out = *Region::whole(memory);
  const Dim sizes[] = {size}, strides[] = {stride};
  EXPECT_TRUE(out.apply(strided_view(memory, sizes, strides, first)));
  return out;
}

std::vector<int64_t> elements_of(const Region& region) {
  std::vector<int64_t> out;
  region.for_rows([&](int64_t first, int64_t count, int64_t stride) {
    for (int64_t i = 0; i < count; i++) out.push_back(first + i * stride);
  });
  return out;
}

TEST(LoopRegion, FollowsMovementOps) {
  Arena arena;
  const Dim shape[] = {4, 6};
  const UOp x = reshape(buffer(arena, dtypes::float32, 24, "CPU", 0), shape);
  Region r = *Region::whole(x);
  EXPECT_EQ(r.numel(), 24);
  const std::pair<Dim, Dim> part[] = {{1, 3}, {2, 4}};
  ASSERT_TRUE(r.apply(shrink(x, part)));
  EXPECT_EQ(elements_of(r), (std::vector<int64_t>{8, 9, 14, 15}));
  const int64_t order[] = {1, 0};
  ASSERT_TRUE(r.apply(permute(shrink(x, part), order)));
  EXPECT_EQ(elements_of(r), (std::vector<int64_t>{8, 14, 9, 15}));
  const int64_t sizes[] = {4};
  EXPECT_FALSE(r.reshape(sizes)) << "columns of rows that lie apart are no one row";
  const int64_t wrong[] = {5};
  EXPECT_FALSE(r.reshape(wrong));
  EXPECT_EQ(elements_of(r), (std::vector<int64_t>{8, 14, 9, 15}));
}

TEST(LoopRegion, KnowsWhetherAnElementIsThereTwice) {
  EXPECT_TRUE(row(3, 6, 2).is_injective());
  EXPECT_TRUE(row(9, 4, -3).is_injective());
  EXPECT_FALSE(row(3, 6, 0).is_injective());
  EXPECT_TRUE(row(3, 1, 0).is_injective());
  Arena arena;
  const UOp memory = buffer(arena, dtypes::float32, 64, "CPU", 0);
  const auto is_injective = [&](const Dim(&sizes)[2], const Dim(&strides)[2]) {
    Region r = *Region::whole(memory);
    EXPECT_TRUE(r.apply(strided_view(memory, sizes, strides, 0)));
    return r.is_injective();
  };
  EXPECT_TRUE(is_injective({3, 4}, {1, 3}));
  EXPECT_FALSE(is_injective({3, 4}, {1, 2})) << "windows that overlap";
  EXPECT_FALSE(is_injective({4, 8}, {0, 1})) << "an expanded axis";
}

TEST(LoopRegion, ReshapesWhatLiesInOneRow) {
  Region r = row(3, 6, 2);
  const int64_t sizes[] = {3, 1, 2};
  ASSERT_TRUE(r.reshape(sizes));
  EXPECT_EQ(elements_of(r), (std::vector<int64_t>{3, 5, 7, 9, 11, 13}));
  EXPECT_EQ(r.axes().size(), 3u);
  const int64_t none[] = {1, 1};
  EXPECT_FALSE(r.reshape(none));
}

TEST(LoopRegion, SizesOfOneHaveNoStride) {
  EXPECT_EQ(row(5, 1, 3), row(5, 1, 7));
  EXPECT_NE(row(5, 2, 3), row(5, 2, 7));
}

TEST(WriteTimes, FindTheNextWriteOfAnyElement) {
  const std::optional<WriteTimes> times =
      WriteTimes::of(64, {{0, row(0, 4)}, {1, row(8, 4)}, {2, row(0, 4)}, {5, std::nullopt}});
  ASSERT_TRUE(times);
  EXPECT_EQ(times->first(row(3, 1), 0), 0u);
  EXPECT_EQ(times->first(row(3, 1), 1), 2u);
  EXPECT_EQ(times->first(row(2, 8), 1), 1u);
  EXPECT_EQ(times->first(row(20, 4), 0), 5u) << "a write anywhere may touch it";
  EXPECT_EQ(times->first(row(20, 4), 6), WriteTimes::kNever);
  EXPECT_EQ(times->first(row(0, 64), 3), 5u);
  EXPECT_FALSE(WriteTimes::of(8, {{0, row(6, 4)}})) << "it writes past the memory";
}

}  // namespace
}  // namespace weft
