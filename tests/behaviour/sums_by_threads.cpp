// Reductions by the threads of a group, in reductions of which copies are made, give what the
// kernel gives; groups that a target has not are refused with the limit that they pass.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/lower.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "tests/unit/tensor_helpers.h"

namespace weft::test {
namespace {

constexpr int64_t kPlaces = 3, kOuter = 7, kInner = 40;

Target with_groups() {
  Target out{.name = "groups"};
  out.groups.threads = 64;
  out.groups.most_threads = {64, 2, 8};
  out.vector_arithmetic = false;
  return out;
}

// data0[i] = the sum over j of the least data1[i, j, k]
UOp sum_of_least(Arena& arena) {
  const auto memory = [&](int64_t id, int64_t size) {
    return define_global(arena, dtypes::int32, size, id);
  };
  const UOp i = range(arena, kPlaces, 0), j = range(arena, kOuter, 1, AxisType::kReduce),
            k = range(arena, kInner, 2, AxisType::kReduce);
  const UOp x = load(index(memory(1, kPlaces * kOuter * kInner), (i * kOuter + j) * kInner + k));
  const UOp least = reduce(Op::MIN, x, std::span(&k, 1));
  const UOp sum = reduce(Op::ADD, least, std::span(&j, 1));
  return sink(end(index(memory(0, kPlaces), i).assign(sum), i));
}

TEST(SumsByThreads, HaveMemoryForEachCopy) {
  std::vector<int64_t> numbers;
  for (int64_t n = 0; n < kPlaces * kOuter * kInner; n++) numbers.push_back(n * 7919 % 2003 - 900);
  std::vector<int64_t> expected(kPlaces);
  for (int64_t row = 0; row < kPlaces * kOuter; row++) {
    const auto first = numbers.begin() + row * kInner;
    expected[size_t(row / kOuter)] += *std::min_element(first, first + kInner);
  }
  for (const char* opts :
       {"LOCAL(2, 4)", "LOCAL(2, 4) UNROLL(1, 3)", "LOCAL(2, 4) UNROLL(1, 7)",
        "LOCAL(2, 20) UNROLL(1, 2)", "LOCAL(2, 4) GROUP(1, 2)",
        "LOCAL(2, 8) GROUP(1, 3) UNROLL(2, 5)", "LOCAL(2, 16) UNROLL(1, 4) LOCAL(0, 2)",
        "UPCAST(0, 3) LOCAL(2, 4) UNROLL(1, 2)"}) {
    Arena arena;
    const UOp linear = lower(sum_of_least(arena), with_groups(), parse_opts(opts));
    Bindings bindings{{{0, Array::zeros(dtypes::int32, {kPlaces})},
                       {1, Array::of_ints(dtypes::int32, {kPlaces * kOuter * kInner}, numbers)}},
                      {}};
    evaluate(linear, bindings);
    EXPECT_EQ(bindings.buffers.at(0), Array::of_ints(dtypes::int32, {kPlaces}, expected)) << opts;
  }
}

// data0[i, j] = data1[i, j] - the sum over k of data1[k, j]: loops of different shapes have a sum
// that both read.
TEST(SumsByThreads, InSeveralLoopsAreApart) {
  constexpr int64_t rows = 7, columns = 17;
  std::vector<int64_t> numbers, expected;
  for (int64_t n = 0; n < rows * columns; n++) numbers.push_back(n * 7919 % 2003 - 900);
  for (int64_t n = 0; n < rows * columns; n++) {
    int64_t sum = 0;
    for (int64_t k = 0; k < rows; k++) sum += numbers[size_t(k * columns + n % columns)];
    expected.push_back(numbers[size_t(n)] - sum);
  }
  for (const char* opts : {"TILE(0, 4)", "UPCAST(1, 7) TILE(0, 4)", "TILE(0, 4) TILE(1, 4)",
                           "LOCAL(2, 4) TILE(0, 4)", "LOCAL(2, 2) UPCAST(1, 7) TILE(0, 4)",
                           "LOCAL(2, 3) UNROLL(2, 2) TILE(0, 5) UPCAST(1, 4)"}) {
    for (int64_t groups = 1; groups <= 16; groups++) {
      Arena arena;
      const UOp i = range(arena, rows, 0), j = range(arena, columns, 1),
                k = range(arena, rows, 2, AxisType::kReduce);
      const UOp x = define_global(arena, dtypes::int32, rows * columns, 1);
      const UOp sum = reduce(Op::ADD, load(index(x, k * columns + j)), std::span(&k, 1));
      const UOp out = define_global(arena, dtypes::int32, rows * columns, 0);
      const UOp value = load(index(x, i * columns + j)) - sum;
      const std::vector<UOp> loops{i, j};
      Target target = with_groups();
      target.groups.most_groups = {groups, 1, 1};
      const UOp linear = lower(sink(end(index(out, i * columns + j).assign(value), loops)), target,
                               parse_opts(opts));
      Bindings bindings{{{0, Array::zeros(dtypes::int32, {rows * columns})},
                         {1, Array::of_ints(dtypes::int32, {rows * columns}, numbers)}},
                        {}};
      evaluate(linear, bindings);
      EXPECT_EQ(bindings.buffers.at(0), Array::of_ints(dtypes::int32, {rows * columns}, expected))
          << opts << " in " << groups << " groups";
    }
  }
}

// 64 parts of 16 x 4 threads, which are all that a group has.
TEST(SumsByThreads, InTwoStepsNeedNoMoreThreads) {
  constexpr int64_t rows = 16, columns = 12;
  std::vector<int64_t> numbers;
  int64_t expected = 0;
  for (int64_t n = 0; n < rows * columns; n++) {
    numbers.push_back(n * 7919 % 2003 - 900);
    expected += numbers.back();
  }
  for (const char* opts : {"LOCAL(0, 16) LOCAL(1, 4)", "LOCAL(1, 4) LOCAL(0, 16)",
                           "LOCAL(0, 2) LOCAL(1, 12)", "LOCAL(0, 16) LOCAL(1, 1)"}) {
    Arena arena;
    const std::vector<UOp> over{range(arena, rows, 0, AxisType::kReduce),
                                range(arena, columns, 1, AxisType::kReduce)};
    const UOp x = define_global(arena, dtypes::int32, rows * columns, 1);
    const UOp sum = reduce(Op::ADD, load(index(x, over[0] * columns + over[1])), over);
    const UOp out = define_global(arena, dtypes::int32, 1, 0);
    Target target = with_groups();
    target.groups.most_threads = {64, 64, 64};
    const UOp linear =
        lower(sink(index(out, index_const(arena, 0)).assign(sum)), target, parse_opts(opts));
    Bindings bindings{{{0, Array::zeros(dtypes::int32, {1})},
                       {1, Array::of_ints(dtypes::int32, {rows * columns}, numbers)}},
                      {}};
    evaluate(linear, bindings);
    EXPECT_EQ(bindings.buffers.at(0).data[0], uint64_t(expected)) << opts;
  }
}

// data0[i, j] = data1[i, j] - the most of the row + its sum
UOp three_loops(Arena& arena, int64_t columns) {
  const UOp i = range(arena, kPlaces, 0), j = range(arena, columns, 1);
  const auto x = [&](UOp at) {
    return load(index(define_global(arena, dtypes::int32, kPlaces * columns, 1), i * columns + at));
  };
  const auto over = [&](Op op, int64_t id) {
    const UOp k = range(arena, columns, id, AxisType::kReduce);
    return reduce(op, x(k), std::span(&k, 1));
  };
  const UOp out = index(define_global(arena, dtypes::int32, kPlaces * columns, 0), i * columns + j);
  return sink(end(out.assign(x(j) - over(Op::MAX, 2) + over(Op::ADD, 3)), std::vector{i, j}));
}

// Short rows are read once, for all loops; longer ones once by each.
TEST(SumsByThreads, OfARowThatThreadsKeep) {
  for (const int64_t columns : {2048, 2000, 4096}) {
    std::vector<int64_t> numbers, expected;
    for (int64_t n = 0; n < kPlaces * columns; n++) numbers.push_back(n * 7919 % 2003 - 900);
    for (auto row = numbers.begin(); row != numbers.end(); row += columns) {
      const int64_t most = *std::max_element(row, row + columns);
      const int64_t sum = std::accumulate(row, row + columns, int64_t(0));
      for (int64_t j = 0; j < columns; j++) expected.push_back(row[j] - most + sum);
    }
    Arena arena;
    const UOp ast = three_loops(arena, columns), linear = lower(ast, with_groups());
    Bindings bindings{{{0, Array::zeros(dtypes::int32, {kPlaces * columns})},
                       {1, Array::of_ints(dtypes::int32, {kPlaces * columns}, numbers)}},
                      {}};
    evaluate(linear, bindings);
    EXPECT_EQ(bindings.buffers.at(0), Array::of_ints(dtypes::int32, {kPlaces * columns}, expected))
        << columns;
    const auto is_loop = [](UOp n) { return n.is(Op::RANGE); };
    const auto is_read = [](UOp n) {
      return n.is(Op::LOAD) && n.src(0).dtype().space == AddrSpace::kGlobal;
    };
    const bool is_kept = columns <= 2048;
    EXPECT_EQ(std::ranges::none_of(linear.srcs(), is_loop), is_kept) << columns;
    EXPECT_EQ(std::ranges::count_if(linear.srcs(), is_read) == 8, is_kept) << columns;
  }
}

TEST(SumsByThreads, InGroupsThatAreTooLargeAreRefused) {
  const auto refused = [](const char* opts) {
    Arena arena;
    return thrown<CompileError>(
        [&] { lower(sum_of_least(arena), with_groups(), parse_opts(opts)); });
  };
  EXPECT_EQ(refused("LOCAL(2, 40) LOCAL(0, 2)"),
            "[gpudims] a group of 40 x 2 x 1 threads is more than the 64 that the target has");
  EXPECT_EQ(refused("LOCAL(2, 4) LOCAL(0, 3)"),
            "[gpudims] a group of 4 x 3 x 1 threads has more than the 2 that the target has in "
            "dimension 1");
  EXPECT_EQ(refused("LOCAL(2, 4) LOCAL(0, 2)"), "");
}

}  // namespace
}  // namespace weft::test
