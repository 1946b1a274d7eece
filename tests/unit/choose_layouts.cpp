// What is chosen where memory is read in another order than it is written, in random sizes: lanes
// lie in order, short loops are one, groups are loops, and sums walk memory from its outermost
// axis.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/canonical.h"
#include "codegen/lower.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr int64_t kLanes = 8;

Target with_vectors() {
  Target out{.name = "vectors"};
  out.vector_bytes = 4 * kLanes;
  return out;
}

class Sizes {
 public:
  explicit Sizes(unsigned seed) : random_(seed) {}
  int64_t operator()(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  std::mt19937& random() { return random_; }

 private:
  std::mt19937 random_;
};

UOp memory(Arena& arena, int64_t id, int64_t size) {
  return define_global(arena, dtypes::float32, size, id);
}

const Opt* find(const OptList& opts, OptKind kind) {
  const auto at = std::ranges::find(opts, kind, &Opt::kind);
  return at == opts.end() ? nullptr : &*at;
}

// Of small integers, of which sums are exact.
std::vector<double> result_of(UOp program, std::vector<int64_t> sizes) {
  Bindings b;
  for (size_t i = 0; i < sizes.size(); i++) {
    std::vector<double> values;
    for (int64_t n = 0; n < sizes[i]; n++) values.push_back(double(n * 7919 % 11 - 5));
    b.buffers[int64_t(i)] = Array::of_doubles(dtypes::float32, {sizes[i]}, values);
  }
  evaluate(program, b);
  return b.buffers[0].doubles();
}
void expect_same_result(UOp ast, const Target& target, const std::vector<int64_t>& sizes) {
  EXPECT_EQ(result_of(lower(ast, target), sizes),
            result_of(lower(ast, target, std::vector<Opt>()), sizes));
}

// data0[i, j] = data1[j, i]: a block that is as high as it is wide.
TEST(ChooseLayouts, TranspositionsOfAnySizeAreTurnedInRegisters) {
  Sizes size(1);
  for (int i = 0; i < 20; i++) {
    Arena arena;
    const int64_t high = size(kLanes, 200), wide = size(kLanes, 200);
    const UOp r = range(arena, high, 0), c = range(arena, wide, 1);
    const UOp value = load(index(memory(arena, 1, high * wide), c * high + r));
    const UOp ast = sink(
        end(index(memory(arena, 0, high * wide), r * wide + c).assign(value), std::vector{r, c}));
    const Target target = with_vectors();
    const OptList opts = choose_opts(ast, target);
    const Opt *vector = find(opts, OptKind::kVector), *copies = find(opts, OptKind::kUpcast);
    ASSERT_TRUE(vector != nullptr && copies != nullptr) << print(opts);
    EXPECT_EQ(vector->amount, kLanes);
    EXPECT_EQ(copies->amount, kLanes);
    expect_same_result(ast, target, {high * wide, high * wide});
  }
}

// data0[i, j] = data1[i, j] where i < k, else data2[i - k, j]: as one loop, also past the border.
TEST(ChooseLayouts, ShortLoopsOfElementsAreMergedAcrossABorder) {
  Sizes size(2);
  for (int i = 0; i < 20; i++) {
    Arena arena;
    const int64_t high = size(4, 40), wide = size(2, 8 * kLanes - 1), border = size(2, high - 2);
    const UOp r = range(arena, high, 0), c = range(arena, wide, 1);
    const UOp zero = constant(arena, dtypes::float32, 0.0);
    const UOp above = r < index_const(arena, border), below = index_const(arena, border - 1) < r;
    const UOp a = load(index(memory(arena, 1, border * wide), r * wide + c), above, zero);
    const UOp b = load(
        index(memory(arena, 2, (high - border) * wide), r * wide + c - border * wide), below, zero);
    const UOp ast = simplify(sink(
        end(index(memory(arena, 0, high * wide), r * wide + c).assign(a + b), std::vector{r, c})));
    const Target target = with_vectors();
    const OptList opts = choose_opts(ast, target);
    EXPECT_NE(find(opts, OptKind::kMerge), nullptr) << print(opts);
    expect_same_result(ast, target, {high * wide, border * wide, (high - border) * wide});
  }
}

// data0[o, x] = the sum over k of data1[o, k] * data2[o // c, k, x].
TEST(ChooseLayouts, LoopsOfGroupsAreSplitIntoTheirTwo) {
  Sizes size(3);
  for (int i = 0; i < 20; i++) {
    Arena arena;
    const int64_t groups = size(2, 4), each = size(2, 20), sums = size(2, 20), wide = size(8, 50);
    const UOp o = range(arena, groups * each, 0), x = range(arena, wide, 1);
    const UOp k = range(arena, sums, 2, AxisType::kReduce);
    const std::vector<int64_t> sizes{groups * each * wide, groups * each * sums,
                                     groups * sums * wide};
    const UOp a = load(index(memory(arena, 1, sizes[1]), o * sums + k));
    const UOp b = load(index(memory(arena, 2, sizes[2]), (o / each * sums + k) * wide + x));
    const UOp sum = reduce(Op::ADD, a * b, std::vector{k});
    const UOp ast =
        sink(end(index(memory(arena, 0, sizes[0]), o * wide + x).assign(sum), std::vector{o, x}));
    const Target target = with_vectors();
    const OptList opts = choose_opts(ast, target);
    const Opt* split = find(opts, OptKind::kTile);
    ASSERT_NE(split, nullptr) << print(opts);
    EXPECT_EQ(*split, (Opt{OptKind::kTile, 0, each}));
    // Sums are in registers side by side: rows of a group share what they read.
    EXPECT_NE(find(opts, OptKind::kUpcast), nullptr) << print(opts);
    expect_same_result(ast, target, sizes);
  }
}

// The sum of an array whose axes are listed in any order.
TEST(ChooseLayouts, SumsWalkMemoryFromItsOutermostAxis) {
  Sizes size(4);
  for (int i = 0; i < 20; i++) {
    Arena arena;
    const size_t rank = size_t(size(2, 4));
    std::vector<UOp> loops;
    UOp at = index_const(arena, 0);
    int64_t step = 1;
    for (size_t axis = 0; axis < rank; axis++) {
      const int64_t places = size(2, 9);
      loops.push_back(range(arena, places, int64_t(axis), AxisType::kReduce));
      at = at + loops.back() * step;
      step *= places;
    }
    std::ranges::shuffle(loops, size.random());
    const UOp sum = reduce(Op::ADD, load(index(memory(arena, 1, step), at)), loops);
    const UOp ast = sink(index(memory(arena, 0, 1), index_const(arena, 0)).assign(sum));
    for (UOp n : toposort(canonical(ast))) {
      if (!n.is(Op::REDUCE)) continue;
      std::vector<int64_t> steps;
      for (UOp r : n.srcs().subspan(1)) steps.push_back(step_of(n.src(0), r).value());
      EXPECT_TRUE(std::ranges::is_sorted(steps, std::ranges::greater()));
    }
    expect_same_result(ast, with_vectors(), {1, step});
  }
}

}  // namespace
}  // namespace weft
