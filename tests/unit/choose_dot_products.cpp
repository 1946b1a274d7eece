// Sums of products along what one factor has in order and the other at steps: the other is packed.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/lower.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft {
namespace {

constexpr int64_t kChannels = 3, kSide = 13, kWindow = 3;

Target with_vectors(size_t cache_bytes) {
  Target out{.name = "vectors"};
  out.vector_bytes = 32;
  out.cache_bytes = cache_bytes;
  return out;
}

// The gradient by the weight of a convolution: data0[o, c, i, j] = the sum over y and x of
// data1[o, y, x] * data2[c, step * y + i - 1, step * x + j - 1], which is 0 outside.
UOp by_the_weight(Arena& arena, int64_t outputs, int64_t step) {
  const int64_t places = (kSide + 1) / 2, wide = places * step + kWindow;
  const UOp o = range(arena, outputs, 0), c = range(arena, kChannels, 1),
            i = range(arena, kWindow, 2), j = range(arena, kWindow, 3),
            y = range(arena, places, 4, AxisType::kReduce),
            x = range(arena, places, 5, AxisType::kReduce);
  const auto memory = [&](int64_t id, int64_t size) {
    return define_global(arena, dtypes::float32, size, id);
  };
  const UOp a = load(index(memory(1, outputs * places * places), (o * places + y) * places + x));
  const UOp at = (c * wide + y * step + i) * wide + x * step + j;
  const UOp inside =
      (index_const(arena, 0) < y * step + i) & (index_const(arena, 0) < x * step + j);
  const UOp b = load(index(memory(2, kChannels * wide * wide), at), inside,
                     constant(arena, dtypes::float32, 0.0));
  const UOp sum = reduce(Op::ADD, a * b, std::vector{y, x});
  const UOp out = index(memory(0, outputs * kChannels * kWindow * kWindow),
                        ((o * kChannels + c) * kWindow + i) * kWindow + j);
  return sink(end(out.assign(sum), std::vector{o, c, i, j}));
}

// Small integers: sums are exact in every order.
std::vector<double> result_of(UOp program, int64_t outputs, int64_t step) {
  const int64_t places = (kSide + 1) / 2, wide = places * step + kWindow;
  const auto numbers = [](int64_t size) {
    std::vector<double> out;
    for (int64_t n = 0; n < size; n++) out.push_back(double(n * 7919 % 11 - 5));
    return Array::of_doubles(dtypes::float32, {size}, out);
  };
  Bindings b;
  b.buffers[0] = Array::zeros(dtypes::float32, {outputs * kChannels * kWindow * kWindow});
  b.buffers[1] = numbers(outputs * places * places);
  b.buffers[2] = numbers(kChannels * wide * wide);
  evaluate(program, b);
  return b.buffers[0].doubles();
}

bool has(const OptList& opts, OptKind kind, int64_t axis) {
  return std::ranges::any_of(opts,
                             [&](const Opt& opt) { return opt.kind == kind && opt.axis == axis; });
}

TEST(ChooseDotProducts, PacksWhatLiesAtSteps) {
  const int64_t outputs = 32;
  const size_t of_a_channel = 4 * 9 * 7 * 8;  // windows, each row of it a vector
  for (const size_t cache : {of_a_channel, of_a_channel - 1, size_t(16)}) {
    Arena arena;
    const UOp ast = by_the_weight(arena, outputs, 2);
    const Target target = with_vectors(cache);
    const OptList opts = choose_opts(ast, target);
    EXPECT_TRUE(has(opts, OptKind::kVector, 5)) << print(opts);
    const auto staged = std::ranges::find(opts, OptKind::kStage, &Opt::kind);
    const int64_t loop = staged == opts.end() ? -1 : staged->amount;
    EXPECT_EQ(loop, cache == of_a_channel ? 1 : cache == 16 ? -1 : 2) << print(opts);
    EXPECT_EQ(result_of(lower(ast, target, opts), outputs, 2), result_of(ast, outputs, 2));
  }
}

TEST(ChooseDotProducts, PacksNothingForFewRows) {
  Arena arena;
  const OptList opts = choose_opts(by_the_weight(arena, 8, 2), with_vectors(1 << 20));
  EXPECT_EQ(std::ranges::find(opts, OptKind::kStage, &Opt::kind), opts.end()) << print(opts);
}

TEST(ChooseDotProducts, PacksNothingThatIsInOrder) {
  Arena arena;
  const UOp ast = by_the_weight(arena, 32, 1);
  const OptList opts = choose_opts(ast, with_vectors(1 << 20));
  EXPECT_TRUE(has(opts, OptKind::kVector, 5)) << print(opts);
  EXPECT_EQ(std::ranges::find(opts, OptKind::kStage, &Opt::kind), opts.end()) << print(opts);
  EXPECT_EQ(result_of(lower(ast, with_vectors(1 << 20), opts), 32, 1), result_of(ast, 32, 1));
}

}  // namespace
}  // namespace weft
