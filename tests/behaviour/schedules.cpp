// What schedules promise beside right results: order, memory, limits, equal kernels, symbolic
// sizes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/hash.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "schedule/schedule.h"
#include "schedule/schedule_cache.h"
#include "tests/fuzz/run_schedule.h"

namespace weft {
namespace {

using Sizes = std::vector<Dim>;
using Box = std::vector<std::pair<Dim, Dim>>;
using Axes = std::vector<int64_t>;
using Kind = ScheduledBuffer::Kind;

class ScheduleTest : public testing::Test {
 protected:
  UOp memory(int64_t size, int64_t id) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < std::min<int64_t>(size, 4096); i++) numbers.push_back((i * 7) % 11 - 5);
    if (size <= 4096) inputs_[id] = Array::of_ints(dtypes::float32, {size}, numbers);
    return buffer(arena_, dtypes::float32, size, "REF", id);
  }
  UOp number(double v) { return constant(arena_, dtypes::float32, v); }
  static UOp slice(UOp x, int64_t begin, int64_t end) { return shrink(x, Box{{begin, end}}); }

  // y = x @ w for square x and w.
  UOp product(UOp x, UOp w, int64_t n) {
    const UOp a = expand(reshape(x, Sizes{n, 1, n}), Sizes{n, n, n});
    const UOp b = expand(reshape(permute(reshape(w, Sizes{n, n}), Axes{1, 0}), Sizes{1, n, n}),
                         Sizes{n, n, n});
    return reshape(reduce_axis(Op::ADD, a * b, Axes{2}), Sizes{n, n});
  }

  void expect_right(UOp sink, const Schedule& schedule) {
    Bindings bindings{inputs_, {}};
    const std::vector<Array> expected = evaluate(sink, bindings);
    const std::vector<Array> got = test::run_schedule(schedule, inputs_);
    ASSERT_EQ(expected.size(), got.size());
    for (size_t i = 0; i < got.size(); i++) EXPECT_EQ(expected[i].data, got[i].data) << i;
  }

  static size_t statements(UOp ast) {
    size_t count = 0;
    for (UOp n : toposort(ast)) count += is_elementwise(n.op()) && !n.dtype().is_index();
    return count;
  }

  Arena arena_;
  std::map<int64_t, Array> inputs_;
};

TEST_F(ScheduleTest, OldContentThatIsNeededLaterIsCopiedFirst) {
  const UOp b = memory(8, 1);
  const UOp next = after(b, slice(b, 0, 4).assign(number(1)));
  const UOp both = contiguous(b * number(10) + next);  // waits for the write, and reads the old
  const UOp root = sink(next, both);
  const Schedule s = make_schedule(root);
  EXPECT_EQ(s.calls.size(), 3u);
  EXPECT_EQ(s.calls[0].name, "copy");
  expect_right(root, s);
}

TEST_F(ScheduleTest, ReadersOfOldContentRunBeforeTheWriter) {
  const UOp b = memory(8, 1);
  const UOp sum = contiguous(reduce_axis(Op::ADD, b, Axes{0}));
  const UOp next = after(b, slice(b, 0, 4).assign(number(1)));
  const UOp root = sink(next, sum);
  const Schedule s = make_schedule(root);
  ASSERT_EQ(s.calls.size(), 2u);
  EXPECT_EQ(s.calls[1].waits_for, std::vector<uint32_t>{0});
  EXPECT_EQ(s.buffers[s.calls[1].arguments[0]].kind, Kind::kInput);
  expect_right(root, s);
}

TEST_F(ScheduleTest, CallsThatDoNotMeetDoNotWait) {
  const UOp a = reduce_axis(Op::ADD, memory(8, 1), Axes{0});
  const UOp b = reduce_axis(Op::ADD, memory(6, 2), Axes{0});
  const Schedule s = make_schedule(sink(contiguous(a), contiguous(b)));
  ASSERT_EQ(s.calls.size(), 2u);
  EXPECT_TRUE(s.calls[0].waits_for.empty());
  EXPECT_TRUE(s.calls[1].waits_for.empty());
}

TEST_F(ScheduleTest, TemporariesOfDisjointLivesShareMemory) {
  UOp x = reshape(memory(64, 1), Sizes{8, 8});
  for (int i = 0; i < 12; i++) x = max(product(x, memory(64, 2 + i), 8), number(0));
  const UOp root = sink(contiguous(x));
  const Schedule s = make_schedule(root);
  EXPECT_EQ(s.calls.size(), 12u);
  EXPECT_EQ(s.temp_bytes, 11 * 256);
  EXPECT_EQ(s.peak_bytes, 2 * 256);
  expect_right(root, s);
}

TEST_F(ScheduleTest, EqualKernelsAreOne) {
  UOp x = reshape(memory(64, 1), Sizes{8, 8});
  for (int i = 0; i < 12; i++) x = max(product(x, memory(64, 2 + i), 8), number(0));
  const Schedule s = make_schedule(sink(contiguous(x)));
  EXPECT_EQ(s.kernels.size(), 1u);
  for (const KernelCall& call : s.calls) EXPECT_EQ(call.kernel, 0u);
}

TEST_F(ScheduleTest, AnOutputTakesOverAnInputThatDies) {
  const UOp root = sink(contiguous(memory(8, 1) * number(2)));
  const Schedule kept = make_schedule(root), taken = make_schedule(root, {.dying = {1}});
  const auto slots = [](const Schedule& s) {
    return std::pair(s.buffers[s.calls[0].arguments[0]].slot,
                     s.buffers[s.calls[0].arguments[1]].slot);
  };
  EXPECT_NE(slots(kept).first, slots(kept).second);
  EXPECT_EQ(slots(taken).first, slots(taken).second);
  expect_right(root, taken);
}

TEST_F(ScheduleTest, AnOutputDoesNotTakeOverWhatOtherIterationsRead) {
  const UOp root = sink(contiguous(flip(memory(8, 1), Axes{0}) * number(2)));
  const Schedule s = make_schedule(root, {.dying = {1}});
  EXPECT_NE(s.buffers[s.calls[0].arguments[0]].slot, s.buffers[s.calls[0].arguments[1]].slot);
  expect_right(root, s);
}

TEST_F(ScheduleTest, LongChainsAreCutAtTheLimit) {
  UOp x = memory(4, 1);
  std::vector<UOp> others;
  for (int i = 0; i < 7; i++) others.push_back(memory(4, 2 + i));
  for (size_t i = 0; i < 3000; i++) x = i % 3 ? x + others[i * i % 7] : max(x, others[i % 5]);
  const UOp root = sink(contiguous(x));
  const Schedule s = make_schedule(root);
  EXPECT_LE(s.calls.size(), 8u);
  for (const Graph& kernel : s.kernels) EXPECT_LE(statements(kernel.root), 512u);
  expect_right(root, s);
}

TEST_F(ScheduleTest, NoKernelHasMoreBuffersThanTheTargetTakes) {
  UOp x = memory(4, 0);
  for (int i = 1; i < 40; i++) x = x * number(2) + memory(4, i);
  const UOp root = sink(contiguous(x));
  const Schedule s = make_schedule(root, {.limits = {.buffers = 8}});
  for (const KernelCall& call : s.calls) EXPECT_LE(call.arguments.size(), 8u);
  expect_right(root, s);
}

TEST_F(ScheduleTest, WritesThatNoLoopDescribesComeInKernelsOfBoundedSize) {
  const UOp b = memory(2000, 1);
  std::vector<UOp> writes;
  for (int64_t i = 0; i < 600; i++) {  // widths that do not repeat in any order a loop has
    const int64_t width = 1 + (i * i * 31 + i * 7) % 3;
    writes.push_back(slice(b, i * 3, i * 3 + width).assign(number(double(i))));
  }
  const UOp root = sink(after(b, writes));
  const Schedule s = make_schedule(root);
  for (const Graph& kernel : s.kernels) EXPECT_LE(kernel.root.src_count(), 256u);
  expect_right(root, s);
}

TEST_F(ScheduleTest, OneKernelServesEveryValueOfASymbolicSize) {
  std::vector<Hash128> kernels;
  for (int64_t n = 1; n <= 8; n++) {
    const UOp size = bind(variable(arena_, "n", 1, 8), index_const(arena_, n));
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < n * 3; i++) numbers.push_back(i * i % 7 - 3);
    inputs_[1] = Array::of_ints(dtypes::float32, {n * 3}, numbers);
    const UOp flat = buffer(arena_, dtypes::float32, size * 3, "REF", 1);
    const UOp x = reshape(flat, Sizes{size, 3});
    const UOp sum = expand(reduce_axis(Op::ADD, x, Axes{0}), Sizes{size, 3});
    const UOp padded = pad(permute(flip(x - sum, Axes{0}), Axes{1, 0}), Box{{0, 0}, {1, 0}});
    const UOp root = sink(contiguous(padded), contiguous(reduce_axis(Op::MAX, x, Axes{0, 1})));
    const Schedule s = make_schedule(root);
    expect_right(root, s);
    Hash128 all{};
    for (const KernelCall& call : s.calls) {
      all = mix(all, graph_hash(call.ast));
      ASSERT_EQ(call.variables.size(), 1u);
      EXPECT_EQ(call.variables[0].value, n);
    }
    kernels.push_back(all);
  }
  for (const Hash128& k : kernels) EXPECT_EQ(k, kernels[0]);
}

TEST_F(ScheduleTest, SizesThatAreSumsOfSymbolsAreRight) {
  for (int64_t n = 1; n <= 11; n++) {
    const UOp size = bind(variable(arena_, "n", 1, 11), index_const(arena_, n));
    const UOp b = memory(12, 1);
    const UOp x = shrink(b, Box{{Dim(size), 12}});  // 12 - n elements
    const UOp both = sink(contiguous(x * number(2) + flip(x * number(2), Axes{0})));
    expect_right(both, make_schedule(both));
    const UOp write = sink(after(b, x.assign(x * number(2))));
    expect_right(write, make_schedule(write));
  }
}

TEST_F(ScheduleTest, OneVersionOfManySourcesKeepsToTheLimits) {
  const UOp b = memory(800, 0);
  std::vector<UOp> copies, sums;
  for (int64_t i = 0; i < 200; i++) {
    const UOp from = memory(4, i + 1);
    const UOp target = slice(b, i * 4, i * 4 + 1 + i * i % 4);
    const Sizes sizes{Dim(1 + i * i % 4)};
    copies.push_back(target.assign(slice(from, 0, 1 + i * i % 4)));
    sums.push_back(target.assign(expand(reduce_axis(Op::ADD, from, Axes{0}), sizes)));
  }
  for (const auto& writes : {copies, sums}) {
    const UOp root = sink(after(b, writes));
    const Schedule s = make_schedule(root);
    for (const KernelCall& call : s.calls) {
      EXPECT_LE(call.arguments.size(), 128u);
      size_t reductions = 0;
      for (UOp n : toposort(call.ast)) reductions += n.is(Op::REDUCE);
      EXPECT_LE(reductions, 16u);
    }
    expect_right(root, s);
  }
}

TEST_F(ScheduleTest, ReductionsOverDifferentAxesDoNotShareAKernel) {
  const Sizes sizes{64, 64};
  const UOp e = unary(Op::EXP, reshape(memory(4096, 1), sizes));
  const auto share = [&](int64_t axis) {
    return contiguous(binary(Op::FDIV, e, expand(reduce_axis(Op::ADD, e, Axes{axis}), sizes)));
  };
  const UOp root = sink(share(1), share(0));
  const Schedule s = make_schedule(root);
  EXPECT_GE(s.calls.size(), 2u);
  expect_right(root, s);
}

TEST_F(ScheduleTest, AProductIsStoredBeforeItIsReduced) {
  const UOp x = reshape(memory(64, 1), Sizes{8, 8});
  const UOp root = sink(contiguous(reduce_axis(Op::ADD, product(x, memory(64, 2), 8), Axes{0, 1})));
  const Schedule s = make_schedule(root);
  EXPECT_EQ(s.calls.size(), 2u);
  expect_right(root, s);
}

TEST_F(ScheduleTest, ViewsOfALongChainAreRight) {
  UOp c = reshape(memory(12, 1), Sizes{3, 4});
  for (int i = 0; i < 100; i++) c = i % 2 ? c + number(i % 5) : max(c, number(-i));
  for (const UOp view : {flip(c, Axes{0}), permute(c, Axes{1, 0}), reshape(c, Sizes{2, 6}),
                         pad(c, Box{{1, 0}, {0, 2}}), c + flip(c, Axes{1})}) {
    const UOp root = sink(contiguous(view), contiguous(c));
    expect_right(root, make_schedule(root));
  }
}

TEST_F(ScheduleTest, ASymbolicSizeOutOfItsBoundsIsRefusedWhereItIsBound) {
  const UOp n = variable(arena_, "n", 1, 8);
  EXPECT_THROW(bind(n, index_const(arena_, 9)), Error);
}

TEST_F(ScheduleTest, IndicesOfBuffersPast31BitsAreRight) {
  const int64_t rows = 70'000, columns = 65'537;  // 4.6e9 elements: nothing is allocated
  const UOp x = reshape(memory(rows * columns, 1), Sizes{rows, columns});
  const Schedule s = make_schedule(sink(contiguous(permute(x, Axes{1, 0}) + number(1))));
  ASSERT_EQ(s.calls.size(), 1u);
  for (UOp n : toposort(s.calls[0].ast)) {
    if (!n.is(Op::INDEX)) continue;
    EXPECT_EQ(bounds(n.src(1)), (Interval{0, rows * columns - 1}));
  }
  EXPECT_EQ(s.buffers[s.calls[0].arguments[0]].size, rows * columns);
}

TEST_F(ScheduleTest, ThirtyAxesAreRight) {
  Sizes sizes(30, Dim(1));
  for (const size_t i : {3, 11, 17, 29}) sizes[i] = 2;
  std::vector<int64_t> order(30);
  for (size_t i = 0; i < 30; i++) order[i] = int64_t((i * 7) % 30);
  const UOp x = permute(reshape(memory(16, 1), sizes), order);
  const UOp root =
      sink(contiguous(x * number(3)), contiguous(reduce_axis(Op::ADD, x, Axes{5, 23})));
  expect_right(root, make_schedule(root));
}

TEST_F(ScheduleTest, AnIllegalGraphIsRefusedByTheSpec) {
  const UOp x = memory(4, 1);
  const UOp wrong = arena_.make(Op::ADD, dtypes::float32, {x, memory(6, 2)});
  EXPECT_THROW(make_schedule(sink(contiguous(wrong))), SpecError);
}

TEST_F(ScheduleTest, TheSameGraphIsScheduledOnce) {
  clear_schedule_cache();
  const auto graph = [&](int64_t id, double factor) {
    return sink(contiguous(memory(8, id) * number(factor)));
  };
  const auto first = cached_schedule(graph(1, 2)), again = cached_schedule(graph(1, 2));
  EXPECT_EQ(first, again);
  Arena other;
  EXPECT_EQ(cached_schedule(import_graph(other, graph(1, 2))), first);
  EXPECT_NE(cached_schedule(graph(1, 2), {.dying = {1}}), first);
  EXPECT_NE(cached_schedule(graph(1, 2), {.limits = {.statements = 4}}), first);
  const ScheduleCacheCounts counts = schedule_cache_counts();
  EXPECT_EQ(counts.hits, 2u);
  EXPECT_EQ(counts.misses, 3u);
}

TEST_F(ScheduleTest, AnotherScalarIsALookup) {
  clear_schedule_cache();
  const UOp p = memory(8, 1), g = memory(8, 2);
  const auto step = [&](double rate) {
    return sink(after(p, p.assign(p * number(0.5) - g * number(rate))));
  };
  std::vector<Hash128> kernels;
  for (int i = 1; i <= 6; i++) {
    const UOp root = step(i * 0.375);
    const auto s = cached_schedule(root);
    expect_right(root, *s);
    kernels.push_back(graph_hash(s->calls.at(0).ast));
  }
  for (size_t i = 2; i < kernels.size(); i++) EXPECT_EQ(kernels[i], kernels[1]);
  EXPECT_EQ(schedule_cache_counts().misses, 2u);  // the first, and the one with a parameter
  EXPECT_EQ(schedule_cache_counts().hits, 4u);
  const UOp other = sink(after(p, p.assign(p * number(0.25) - g * number(2))));
  expect_right(other, *cached_schedule(other));  // a second parameter
  EXPECT_EQ(schedule_cache_counts().misses, 3u);
}

TEST_F(ScheduleTest, KernelsThatCannotSequenceLoopsDoNot) {
  const UOp c = contiguous(expand(reshape(number(0), Sizes{1}), Sizes{8}));
  const UOp root = sink(after(c, slice(c, 2, 5).assign(number(4))));
  const Schedule one = make_schedule(root);
  const Schedule two = make_schedule(root, {.limits = {.sequences = false}});
  EXPECT_EQ(one.calls.size(), 1u);
  EXPECT_EQ(two.calls.size(), 2u);
  expect_right(root, one);
  expect_right(root, two);
}

}  // namespace
}  // namespace weft
