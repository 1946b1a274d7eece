// Programs that differ in numbers only share a schedule: offsets and sizes are variables of it.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "schedule/schedule.h"
#include "schedule/schedule_cache.h"
#include "tests/fuzz/run_schedule.h"

namespace weft {
namespace {

using Sizes = std::vector<Dim>;
using Box = std::vector<std::pair<Dim, Dim>>;
using Axes = std::vector<int64_t>;

class LikePrograms : public testing::Test {
 protected:
  LikePrograms() { clear_schedule_cache(); }

  UOp memory(int64_t size, int64_t id) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < size; i++) numbers.push_back((i * 7) % 11 - 5);
    inputs_[id] = Array::of_ints(dtypes::float32, {size}, numbers);
    return buffer(arena_, dtypes::float32, size, "REF", id);
  }
  UOp number(double v) { return constant(arena_, dtypes::float32, v); }
  static UOp slice(UOp x, int64_t begin, int64_t end) { return shrink(x, Box{{begin, end}}); }
  static UOp stored(UOp x) { return sink(contiguous(x)); }

  // Schedules it, checks what it computes, and notes which kernels those are.
  std::shared_ptr<const Schedule> run(UOp root) {
    std::shared_ptr<const Schedule> s = cached_schedule(root);
    Bindings bindings{inputs_, {}};
    const std::vector<Array> expected = evaluate(root, bindings);
    const std::vector<Array> got = test::run_schedule(*s, inputs_);
    EXPECT_EQ(expected.size(), got.size());
    for (size_t i = 0; i < got.size(); i++) EXPECT_EQ(expected[i].data, got[i].data) << i;
    kept_.push_back(s->notes);
    sets_.insert(s->notes.get());
    return s;
  }
  size_t notess() const { return sets_.size(); }

  Arena arena_;
  std::map<int64_t, Array> inputs_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::set<const void*> sets_;
};

TEST_F(LikePrograms, ReadingOneElementAfterTheOther) {
  const UOp p = memory(100, 1);
  for (int64_t i = 0; i < 100; i++) run(stored(slice(p, i, i + 1) * number(2)));
  EXPECT_EQ(notess(), 2u);
  EXPECT_EQ(schedule_cache_counts().misses, 2u);
}

TEST_F(LikePrograms, WritingOneElementAfterTheOther) {
  const UOp a = memory(60, 1);
  for (int64_t i = 1; i < 60; i++) {
    run(sink(after(a, slice(a, i, i + 1).assign(slice(a, i - 1, i) + number(double(i))))));
  }
  EXPECT_EQ(notess(), 2u);
}

TEST_F(LikePrograms, UpdatingAWindowThatMoves) {
  const UOp a = memory(60, 1);
  for (int64_t i = 0; i < 56; i++) {
    const UOp window = slice(a, i, i + 4);
    const auto s = run(sink(after(a, window.assign(window * number(3)))));
    EXPECT_EQ(s->calls.size(), 1u);
  }
  EXPECT_EQ(notess(), 2u);
}

TEST_F(LikePrograms, ReducingAPrefixThatGrows) {
  const UOp x = memory(200, 1);
  for (int64_t n = 2; n < 100; n++) run(stored(reduce_axis(Op::ADD, slice(x, 0, n), Axes{0})));
  EXPECT_EQ(notess(), 2u);
}

TEST_F(LikePrograms, ASequenceThatGrowsHasMemoryOfItsOwnSize) {
  for (int64_t n = 2; n < 60; n++) {
    const UOp x = reshape(memory(n * 3, 1), Sizes{n, 3});
    const UOp rows = expand(reshape(x, Sizes{n, 1, 3}), Sizes{n, n, 3});
    const UOp columns = expand(reshape(x, Sizes{1, n, 3}), Sizes{n, n, 3});
    const auto s = run(stored(reduce_axis(Op::ADD, rows * columns, Axes{2})));
    EXPECT_EQ(s->buffers[s->outputs[0]].size, n * n);
    for (const KernelCall& call : s->calls) {
      for (const BoundVariable& v : call.variables) EXPECT_EQ(v.value, n);
    }
  }
  EXPECT_EQ(notess(), 2u);
}

// Only asked for: nothing is run.
class LikeWork : public LikePrograms {
 protected:
  UOp product(int64_t n, double factor = 1) {
    const UOp a = buffer(arena_, dtypes::float32, n * n, "REF", 1);
    const UOp b = buffer(arena_, dtypes::float32, n * n, "REF", 2);
    const UOp rows = expand(reshape(a, Sizes{n, n, 1}), Sizes{n, n, n});
    const UOp columns = expand(reshape(b, Sizes{1, n, n}), Sizes{n, n, n});
    const UOp sums = reduce_axis(Op::ADD, rows * columns, Axes{1});
    return stored(factor == 1 ? sums : sums * number(factor));
  }
  // Whether kernels are for the sizes of the graph alone.
  static bool is_own(UOp root) {
    const std::shared_ptr<const Schedule> s = cached_schedule(root);
    size_t count = 0;
    for (const KernelCall& call : s->calls) count += call.variables.size();
    EXPECT_EQ(count > 0, bool(s->use));
    return count == 0;
  }
};

TEST_F(LikeWork, ASizeThatDoesMuchGetsAScheduleOfItsOwn) {
  EXPECT_TRUE(is_own(product(128)));
  for (const int64_t n : {129, 160, 190}) {  // after two calls
    for (int i = 0; i < 2; i++) EXPECT_FALSE(is_own(product(n)));
    EXPECT_TRUE(is_own(product(n)));
  }
  for (int i = 0; i < 100; i++) EXPECT_FALSE(is_own(product(16)));       // often, but little
  for (int64_t n = 200; n < 300; n++) EXPECT_FALSE(is_own(product(n)));  // much, but each once
}

TEST_F(LikeWork, OneThatDoesVeryMuchGetsItAtOnce) {
  EXPECT_TRUE(is_own(product(128)));
  EXPECT_TRUE(is_own(product(512)));
  EXPECT_FALSE(is_own(product(300)));
  EXPECT_TRUE(is_own(product(520)));
}

TEST_F(LikeWork, ManySizesGetTheirOwnForMoreAndMore) {
  const auto sum = [&](int64_t n) {
    return stored(buffer(arena_, dtypes::float32, n, "REF", 1) + number(1));
  };
  constexpr int64_t size = 1 << 20;
  EXPECT_TRUE(is_own(sum(1000)));
  for (int64_t i = 0; i < 64; i++) {
    int runs = 1;
    while (!is_own(sum(size + i))) ASSERT_LT(++runs, 1000);
    EXPECT_EQ(runs > 3, i >= 32) << i;
  }
  for (int64_t i = 1000; i < 1100; i++) EXPECT_FALSE(is_own(sum(size + i)));
}

TEST_F(LikeWork, WithScalarsAndOffsetsThatDiffer) {
  EXPECT_TRUE(is_own(product(512, 0.5)));
  for (int i = 0; i < 4; i++) cached_schedule(product(1024, 2.0 + i));
  cached_schedule(product(1024, 8));
  const uint64_t misses = schedule_cache_counts().misses;
  for (int i = 0; i < 20; i++) EXPECT_TRUE(is_own(product(1024, 10.0 + i)));
  EXPECT_EQ(schedule_cache_counts().misses, misses);

  const UOp x = buffer(arena_, dtypes::float32, int64_t(1) << 36, "REF", 3);
  const auto window = [&](int64_t i) {
    return stored(slice(x, i, i + (int64_t(1) << 35)) + number(1));
  };
  EXPECT_TRUE(is_own(window(0)));
  for (int64_t i = 1; i < 20;
       i++) {  // sizes are the same: a schedule of its own would do no better
    const auto s = cached_schedule(window(i));
    EXPECT_FALSE(s->use);
    EXPECT_GT(s->calls[0].variables.size(), 0U);
  }
}

TEST_F(LikeWork, WhatIsStoredIsWorkToo) {
  const auto sum = [&](int64_t n) {
    return stored(buffer(arena_, dtypes::float32, n, "REF", 1) + number(1));
  };
  EXPECT_TRUE(is_own(sum(1000)));
  for (int i = 0; i < 3; i++) EXPECT_FALSE(is_own(sum(int64_t(1) << 18)));
  EXPECT_TRUE(is_own(sum(int64_t(1) << 18)));
  const UOp memory = buffer(arena_, dtypes::float32, int64_t(1) << 40, "REF", 2);
  for (int64_t n = 10; n < 100; n++) {  // little, to large memory
    const UOp part = slice(memory, 0, n);
    EXPECT_EQ(is_own(sink(after(memory, part.assign(part + number(1))))), n == 10);
  }
}

TEST_F(LikePrograms, ASizePastThoseThatWereExpectedIsScheduledAnew) {
  const auto total = [&](int64_t n) { return stored(reduce_axis(Op::MAX, memory(n, 1), Axes{0})); };
  run(total(10));
  run(total(11));
  run(total(10'000));
  run(total(9'000));
  EXPECT_EQ(notess(), 3u);
}

TEST_F(LikePrograms, NumbersThatBreakTheRuleGetASchedule) {
  const UOp x = memory(64, 1);
  const auto both = [&](int64_t i, int64_t k) {
    return stored(slice(x, i, i + 4) + slice(x, k, k + 4));
  };
  run(both(0, 10));
  run(both(1, 11));  // k = i + 10, so far
  run(both(5, 15));
  EXPECT_EQ(notess(), 2u);
  run(both(2, 40));  // no
  run(both(7, 21));
  EXPECT_EQ(notess(), 3u);
}

TEST_F(LikePrograms, AnOverlapThatComesAndGoesIsRight) {
  const UOp a = memory(64, 1);
  for (const int64_t from : {0, 30, 31, 29, 32, 40, 28}) {
    run(sink(after(a, slice(a, 30, 40).assign(slice(a, from, from + 10) + number(1)))));
  }
}

TEST_F(LikePrograms, TheMemoryOfAnInputIsNotTakenOverWhereSizesMayDiffer) {
  for (const auto& [n, m] : std::vector<std::pair<int64_t, int64_t>>{{8, 8}, {8, 10}, {8, 12}}) {
    const UOp x = memory(n, 1), y = memory(m, 2);
    const UOp both = sink(contiguous(x + number(1)), contiguous(y + number(1)));
    const auto s = cached_schedule(both, {.dying = {1, 2}});
    for (const ScheduledBuffer& out : s->buffers) {
      if (out.kind != ScheduledBuffer::Kind::kOutput) continue;
      for (const ScheduledBuffer& in : s->buffers) {
        const bool shares = in.kind == ScheduledBuffer::Kind::kInput && in.slot == out.slot;
        if (shares) {
          EXPECT_EQ(in.size, out.size);
        }
      }
    }
  }
}

// Equal scalars are one node of the graph.
TEST_F(LikePrograms, ScalarsThatHappenToBeEqualAreTheSameProgram) {
  const UOp x = memory(6, 1);
  const auto spread = [&](double v) { return expand(reshape(number(v), Sizes{1}), Sizes{6}); };
  const double rates[][3] = {{2, 3, 4}, {5, 5, 7}, {8, 6, 8}, {9, 9, 9}, {1, 1, 2}};
  for (const auto& [a, b, c] : rates) {
    run(stored((x * spread(a) + spread(b)) * x + spread(c) * spread(0.5)));
  }
  EXPECT_EQ(notess(), 2u);
}

TEST_F(LikePrograms, ScalarsThatWereAlwaysEqualMayDiffer) {
  const UOp x = memory(6, 1);
  const auto spread = [&](double v) { return expand(reshape(number(v), Sizes{1}), Sizes{6}); };
  const double rates[][2] = {{2, 2}, {3, 3}, {4, 4}, {5, 6}, {7, 8}, {9, 9}};
  for (const auto& [a, b] : rates) run(stored((x * spread(a) + spread(b)) * x));
  EXPECT_EQ(notess(), 3u);
}

TEST_F(LikePrograms, AxesOfSizeOneAreNoVariables) {
  for (int64_t n = 1; n < 6; n++) {
    const UOp x = reshape(memory(n * 4, 1), Sizes{n, 4});
    run(stored(x * expand(reduce_axis(Op::ADD, x, Axes{1}), Sizes{n, 4})));
  }
  EXPECT_EQ(notess(), 3u);
}

}  // namespace
}  // namespace weft
