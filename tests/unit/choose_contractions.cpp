// What is chosen for convolutions: of all loops, lanes are those of the one that costs least, and
// what is read across them is packed where it is used often.
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
#include "ir/walk.h"

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

TEST(ChooseContractions, GradientsByTheWeightAreRight) {
  for (const int64_t outputs : {8, 32}) {
    for (const int64_t step : {1, 2}) {
      for (const size_t cache : {size_t(1) << 20, size_t(16)}) {
        Arena arena;
        const UOp ast = by_the_weight(arena, outputs, step);
        const Target target = with_vectors(cache);
        const OptList opts = choose_opts(ast, target);
        EXPECT_NE(std::ranges::find(opts, OptKind::kVector, &Opt::kind), opts.end());
        EXPECT_EQ(result_of(lower(ast, target, opts), outputs, step), result_of(ast, outputs, step))
            << print(opts);
      }
    }
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

TEST(ChooseContractions, LanesAreTheLoopThatFillsThem) {
  for (const auto& [f, is_turned] : {
           std::pair(Forward{1, 64, 7, 4}, true),
           std::pair(Forward{4, 40, 3, 4}, true),   // more in a batch than lanes, a rest of rows
           std::pair(Forward{1, 64, 7, 9}, true),   // columns fill half of two vectors
           std::pair(Forward{1, 8, 8, 32}, false),  // columns fill all of theirs
       }) {
    Arena arena;
    const UOp ast = forward(arena, f);
    const Target target = with_vectors(1 << 20);
    const OptList opts = choose_opts(ast, target);
    EXPECT_EQ(has(opts, OptKind::kVector, 1), is_turned) << print(opts);
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

// data0[i, j] = the sum over k of data1[i, k] * data2[k, j], both of them bfloat16
UOp narrow_product(Arena& arena, int64_t size) {
  const UOp i = range(arena, size, 0), j = range(arena, size, 1),
            k = range(arena, size, 2, AxisType::kReduce);
  const auto read = [&](int64_t id, UOp at) {
    const UOp memory = define_global(arena, dtypes::bfloat16, size * size, id);
    return cast(load(index(memory, at)), dtypes::float32);
  };
  const UOp sum = reduce(Op::ADD, read(1, i * size + k) * read(2, k * size + j), std::vector{k});
  const UOp out = index(define_global(arena, dtypes::float32, size * size, 0), i * size + j);
  return sink(end(out.assign(sum), std::vector{i, j}));
}

TEST(ChooseContractions, NarrowFactorsArePackedAsWhatTheyAreComputedIn) {
  Arena arena;
  const int64_t size = 256;
  const Target target = with_vectors(1 << 20);
  const UOp ast = narrow_product(arena, size);
  const OptList opts = choose_opts(ast, target);
  EXPECT_TRUE(has(opts, OptKind::kStage, 1)) << print(opts);
  EXPECT_TRUE(has(opts, OptKind::kStage, 2)) << print(opts);
  const UOp tiled = apply_opts(ast, opts);
  for (UOp n : toposort(tiled)) {
    const bool is_local = n.is(Op::DEFINE_LOCAL);
    EXPECT_TRUE(!is_local || n.dtype().element() == dtypes::float32) << print(opts);
  }
}

}  // namespace
}  // namespace weft
