// The list that linearize makes keeps every order that the graph asks for.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/index_width.h"
#include "codegen/linearize.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"

namespace weft {
namespace {

UOp listed(UOp kernel) {
  const UOp linear = linearize(index_width(kernel));
  verify(linear, Stage::kProgram);
  return linear;
}

size_t count(UOp linear, Op op) {
  return size_t(std::ranges::count_if(linear.srcs(), [&](UOp n) { return n.is(op); }));
}

std::vector<double> run(UOp linear, const std::vector<double>& memory) {
  Bindings bindings;
  bindings.buffers[0] = Array::of_doubles(dtypes::float32, {int64_t(memory.size())}, memory);
  evaluate(linear, bindings);
  return bindings.buffers[0].doubles();
}

UOp number(Arena& arena, double value) { return constant(arena, dtypes::float32, value); }

// A value read from a register keeps it, whatever is written to the register later.
TEST(LinearizeOrder, VersionsOfARegister) {
  Arena arena;
  const UOp m = define_global(arena, dtypes::float32, 3, 0),
            reg = define_reg(arena, dtypes::float32, 0);
  const UOp first = reg.assign(number(arena, 1));
  const UOp one = after(reg, first);
  const UOp second = after(reg, first).assign(one + number(arena, 1));
  const UOp two = after(reg, second);
  const auto store = [&](int64_t at, UOp value) {
    return index(m, index_const(arena, at)).assign(value);
  };
  const std::vector<UOp> all{store(0, two), store(1, one), store(2, one + two)};
  EXPECT_EQ(run(listed(sink(arena, all)), {0, 0, 0}), (std::vector<double>{2, 1, 3}));
}

// A loop that stands AFTER another one is opened when that one is closed.
TEST(LinearizeOrder, LoopsOneAfterTheOther) {
  Arena arena;
  const UOp m = define_global(arena, dtypes::float32, 4, 0);
  const UOp i = range(arena, 4, 0), j = range(arena, 4, 1);
  const UOp ones = end(index(m, i).assign(number(arena, 1)), i);
  const UOp filled = after(m, ones);
  const UOp back = load(index(filled, index_const(arena, 3) - j));
  const UOp sums = end(index(filled, j).assign(back + number(arena, 1)), j);
  const UOp linear = listed(sink(sums));
  EXPECT_EQ(run(linear, {9, 9, 9, 9}), (std::vector<double>{2, 2, 3, 3}));
  EXPECT_EQ(count(linear, Op::END), 2U);
}

// A second pair of loops, of which the inner one has a size that depends on the outer one, has ids
// of its own.
TEST(LinearizeOrder, LoopsOfDependentSizesOneAfterTheOther) {
  Arena arena;
  const UOp m = define_global(arena, dtypes::float32, 5, 0), i = range(arena, 2, 0);
  const UOp j = arena.make(Op::RANGE, dtypes::index,
                           {min(index_const(arena, 3), index_const(arena, 5) - i * 3)},
                           Arg::range(1, AxisType::kLoop));
  const std::vector<UOp> loops{i, j};
  const UOp at = i * 3 + j;
  const UOp ones = end(index(m, at).assign(number(arena, 1)), loops);
  const UOp filled = after(m, ones);
  const UOp back = load(index(filled, index_const(arena, 4) - at));
  const UOp sums = end(index(filled, at).assign(back + number(arena, 1)), loops);
  EXPECT_EQ(run(listed(sink(sums)), {9, 9, 9, 9, 9}), (std::vector<double>{2, 2, 2, 3, 3}));
}

// ENDs of one RANGE are one loop, unless one of them waits for the other.
TEST(LinearizeOrder, OneLoopForAllThatCanBeInIt) {
  Arena arena;
  const UOp m = define_global(arena, dtypes::float32, 8, 0), i = range(arena, 4, 0);
  const UOp low = end(index(m, i).assign(number(arena, 1)), i);
  const UOp high = end(index(m, i + 4).assign(number(arena, 2)), i);
  const UOp together = listed(sink(low, high));
  EXPECT_EQ(count(together, Op::END), 1U);
  EXPECT_EQ(run(together, std::vector<double>(8)), (std::vector<double>{1, 1, 1, 1, 2, 2, 2, 2}));
  const UOp old = load(index(after(m, low), index_const(arena, 3) - i));
  const UOp waiting = end(index(m, i + 4).assign(old), i);
  const UOp apart = listed(sink(waiting));
  EXPECT_EQ(count(apart, Op::END), 2U);
  EXPECT_EQ(run(apart, std::vector<double>(8)), (std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1}));
}

// A read comes before the writes to the same memory that it does not stand AFTER.
TEST(LinearizeOrder, ReadsBeforeWrites) {
  Arena arena;
  const UOp m = define_global(arena, dtypes::float32, 2, 0);
  const UOp zero = index_const(arena, 0), one = index_const(arena, 1);
  const UOp left = load(index(m, zero)), right = load(index(m, one));
  const std::vector<UOp> swap{index(m, zero).assign(right), index(m, one).assign(left)};
  EXPECT_EQ(run(listed(sink(arena, swap)), {5, 7}), (std::vector<double>{7, 5}));
}

// What does not depend on a loop stands outside of it.
TEST(LinearizeOrder, OutsideOfLoops) {
  Arena arena;
  const UOp m = define_global(arena, dtypes::float32, 8, 0), i = range(arena, 4, 0);
  const UOp x = load(index(m, index_const(arena, 7)));
  const UOp linear = listed(sink(end(index(m, i).assign(x * x), i)));
  const auto place = [&](auto&& is_it) {
    return std::ranges::find_if(linear.srcs(), is_it) - linear.srcs().begin();
  };
  EXPECT_LT(place([](UOp n) { return n.is(Op::MUL) && n.dtype().is_float(); }),
            place([](UOp n) { return n.is(Op::RANGE); }));
  EXPECT_EQ(run(linear, {0, 0, 0, 0, 0, 0, 0, 3}), (std::vector<double>{9, 9, 9, 9, 0, 0, 0, 3}));
}

// Accumulators of one loop are added to in the order of what they are added up to: memory is read
// upwards.
TEST(LinearizeOrder, AccumulatorsOfOneLoopFirstToLast) {
  Arena arena;
  const UOp m = define_global(arena, dtypes::float32, 8, 0);
  const UOp i = range(arena, 2, 0);
  UOp sum;
  for (int64_t k = 0; k < 4; k++) {
    const UOp reg = define_reg(arena, dtypes::float32, k);
    const UOp before = after(reg, std::vector{reg.assign(number(arena, 0)), i});
    const UOp x = load(index(m, i * index_const(arena, 4) + index_const(arena, k)));
    const UOp part = after(reg, end(before.assign(before + x), i));
    sum = sum ? sum + part : part;
  }
  const UOp linear = listed(sink(index(m, index_const(arena, 0)).assign(sum)));
  EXPECT_EQ(count(linear, Op::END), 1U);
  std::vector<int64_t> offsets;
  for (UOp n : linear.srcs()) {
    if (!n.is(Op::LOAD)) continue;
    const UOp at = n.src(0).src(1);
    offsets.push_back(at.is(Op::ADD) ? at.src(1).const_int() : 0);
  }
  EXPECT_EQ(offsets, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(run(linear, {1, 2, 3, 4, 5, 6, 7, 8})[0], 36);
}

}  // namespace
}  // namespace weft
