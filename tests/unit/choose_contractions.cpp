// What is chosen for convolutions: factors that lie at steps are packed, rows are the lanes where
// columns are too few.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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
Array numbers(int64_t size) {
  std::vector<double> out;
  for (int64_t n = 0; n < size; n++) out.push_back(double(n * 7919 % 11 - 5));
  return Array::of_doubles(dtypes::float32, {size}, out);
}

std::vector<double> result_of(UOp program, int64_t outputs, int64_t step) {
  const int64_t places = (kSide + 1) / 2, wide = places * step + kWindow;
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

TEST(ChooseContractions, PacksWhatLiesAtSteps) {
  const int64_t outputs = 32;
  const size_t of_a_channel = 2016;  // 9 windows of 7 rows, each of them a vector of 32 bytes
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

// data0[b, o, y, x] = the sum over c, i and j of data1[b, c, y + i, x + j] * data2[o, c, i, j]
struct Forward {
  int64_t batch, outputs, high, wide;

  int64_t results() const { return batch * outputs * high * wide; }
  int64_t inputs() const { return batch * kChannels * (high + kWindow) * (wide + kWindow); }
  int64_t weights() const { return outputs * kChannels * kWindow * kWindow; }
};

UOp forward(Arena& arena, const Forward& f) {
  const UOp b = range(arena, f.batch, 0), o = range(arena, f.outputs, 1),
            y = range(arena, f.high, 2), x = range(arena, f.wide, 3),
            c = range(arena, kChannels, 4, AxisType::kReduce),
            i = range(arena, kWindow, 5, AxisType::kReduce),
            j = range(arena, kWindow, 6, AxisType::kReduce);
  const auto read = [&](int64_t id, int64_t size, UOp at) {
    return load(index(define_global(arena, dtypes::float32, size, id), at));
  };
  const UOp input =
      read(1, f.inputs(),
           ((b * kChannels + c) * (f.high + kWindow) + y + i) * (f.wide + kWindow) + x + j);
  const UOp weight = read(2, f.weights(), ((o * kChannels + c) * kWindow + i) * kWindow + j);
  const UOp sum = reduce(Op::ADD, input * weight, std::vector{c, i, j});
  const UOp out = index(define_global(arena, dtypes::float32, f.results(), 0),
                        ((b * f.outputs + o) * f.high + y) * f.wide + x);
  return sink(end(out.assign(sum), std::vector{b, o, y, x}));
}

TEST(ChooseContractions, RowsAreLanesOfShortColumns) {
  for (const auto& [f, is_turned] : {
           std::pair(Forward{1, 64, 7, 4}, true),
           std::pair(Forward{16, 40, 3, 4}, true),  // more in a batch than lanes, a rest of rows
           std::pair(Forward{1, 64, 5, 4}, false),  // packed for too few
           std::pair(Forward{1, 8, 7, 4}, false),   // too few rows
           std::pair(Forward{1, 64, 7, 6}, false),  // columns fill most of a vector
       }) {
    Arena arena;
    const UOp ast = forward(arena, f);
    const Target target = with_vectors(1 << 20);
    const OptList opts = choose_opts(ast, target);
    EXPECT_EQ(has(opts, OptKind::kVector, 1), is_turned) << print(opts);
    EXPECT_EQ(has(opts, OptKind::kStage, 2), is_turned) << print(opts);
    const auto run = [&](UOp program) {
      Bindings b;
      b.buffers[0] = Array::zeros(dtypes::float32, {f.results()});
      b.buffers[1] = numbers(f.inputs());
      b.buffers[2] = numbers(f.weights());
      evaluate(program, b);
      return b.buffers[0].doubles();
    };
    EXPECT_EQ(run(lower(ast, target, opts)), run(ast)) << print(opts);
  }
}

TEST(ChooseContractions, PacksNothingForFewRows) {
  Arena arena;
  const OptList opts = choose_opts(by_the_weight(arena, 8, 2), with_vectors(1 << 20));
  EXPECT_EQ(std::ranges::find(opts, OptKind::kStage, &Opt::kind), opts.end()) << print(opts);
}

TEST(ChooseContractions, PacksNothingThatIsInOrder) {
  Arena arena;
  const UOp ast = by_the_weight(arena, 32, 1);
  const OptList opts = choose_opts(ast, with_vectors(1 << 20));
  EXPECT_TRUE(has(opts, OptKind::kVector, 5)) << print(opts);
  EXPECT_EQ(std::ranges::find(opts, OptKind::kStage, &Opt::kind), opts.end()) << print(opts);
  EXPECT_EQ(result_of(lower(ast, with_vectors(1 << 20), opts), 32, 1), result_of(ast, 32, 1));
}

}  // namespace
}  // namespace weft
