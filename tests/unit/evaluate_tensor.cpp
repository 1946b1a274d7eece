// Tensor graphs without stores: elementwise ops, reductions, buffers, variables, long chains.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "tests/unit/evaluate_helpers.h"

namespace weft::test {
namespace {

UOp matrix(Arena& arena, int64_t rows, int64_t columns, int64_t id, DType type = dtypes::float32) {
  const std::vector<Dim> shape{rows, columns};
  return reshape(buffer(arena, type, rows * columns, "CPU", id), shape);
}

TEST(EvaluateTensor, ScalarsBroadcast) {
  Arena arena;
  const Bindings bindings{{{1, floats({1, 2, 3, 4})}}, {}};
  const UOp x = matrix(arena, 2, 2, 1), two = constant(arena, dtypes::float32, 2.0);
  EXPECT_EQ(evaluate_one(two * x + x, bindings),
            Array::of_doubles(dtypes::float32, {2, 2}, {3, 6, 9, 12}));
  EXPECT_EQ(evaluate_one(where(x < two, two, -x), bindings),
            Array::of_doubles(dtypes::float32, {2, 2}, {2, -2, -3, -4}));
  EXPECT_EQ(evaluate_one(two + two), Array::of_doubles(dtypes::float32, {}, {4}));
}

TEST(EvaluateTensor, DTypesChange) {
  Arena arena;
  const Bindings bindings{{{1, floats({1.75, -2.5, 300, NAN})}}, {}};
  const UOp x = buffer(arena, dtypes::float32, 4, "CPU", 1);
  EXPECT_EQ(evaluate_one(cast(x, dtypes::uint8), bindings),
            Array::of_ints(dtypes::uint8, {4}, {1, 0, 255, 0}));
  EXPECT_EQ(evaluate_one(x < x, bindings), Array::of_ints(dtypes::bool_, {4}, {0, 0, 0, 0}));
  EXPECT_EQ(evaluate_one(bitcast(x, dtypes::uint32), bindings).data[0], 0x3fe00000u);
}

TEST(EvaluateTensor, ReducesOverAxes) {
  Arena arena;
  const Bindings bindings{{{1, ints({1, 2, 3, 4, 5, 6})}}, {}};
  const UOp x = matrix(arena, 2, 3, 1, dtypes::int32);
  const std::vector<int64_t> rows{0}, columns{1}, both{0, 1}, none;
  auto run = [&](Op op, const std::vector<int64_t>& axes) {
    return evaluate_one(reduce_axis(op, x, axes), bindings);
  };
  EXPECT_EQ(run(Op::ADD, rows), Array::of_ints(dtypes::int32, {1, 3}, {5, 7, 9}));
  EXPECT_EQ(run(Op::MAX, columns), Array::of_ints(dtypes::int32, {2, 1}, {3, 6}));
  EXPECT_EQ(run(Op::MUL, both), Array::of_ints(dtypes::int32, {1, 1}, {720}));
  EXPECT_EQ(run(Op::ADD, none), Array::of_ints(dtypes::int32, {2, 3}, {1, 2, 3, 4, 5, 6}));
}

TEST(EvaluateTensor, ReducesInRowMajorOrder) {
  Arena arena;
  // In float32 1e8 + 1 is 1e8: the order decides what is left.
  const Bindings bindings{{{1, floats({1e8, 1, -1e8, 1})}}, {}};
  const UOp x = matrix(arena, 2, 2, 1);
  const std::vector<int64_t> both{0, 1}, swap{1, 0};
  EXPECT_EQ(evaluate_one(reduce_axis(Op::ADD, x, both), bindings).doubles()[0], 1);
  EXPECT_EQ(evaluate_one(reduce_axis(Op::ADD, permute(x, swap), both), bindings).doubles()[0], 2);
}

TEST(EvaluateTensor, EmptyReductionsAreTheIdentity) {
  Arena arena;
  const Bindings bindings{{{1, floats({})}}, {}};
  const UOp x = matrix(arena, 2, 0, 1);
  const std::vector<int64_t> columns{1};
  EXPECT_EQ(evaluate_one(reduce_axis(Op::MAX, x, columns), bindings),
            Array::of_doubles(dtypes::float32, {2, 1}, {-INFINITY, -INFINITY}));
  EXPECT_EQ(evaluate_one(x, bindings).shape, (std::vector<int64_t>{2, 0}));
}

TEST(EvaluateTensor, SinksGiveOneValuePerSource) {
  Arena arena;
  Bindings bindings{{{1, floats({1, 2})}}, {}};
  const UOp x = buffer(arena, dtypes::float32, 2, "CPU", 1);
  const UOp moved = copy_to(contiguous(detach(x)), "CUDA:1");
  const std::vector<Array> got = evaluate(sink({moved, x + x}), bindings);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0], floats({1, 2}));
  EXPECT_EQ(got[1], floats({2, 4}));
  EXPECT_EQ(evaluate(sink({x.assign(x)}), bindings).at(0), Array::nothing());
}

TEST(EvaluateTensor, BuffersMayBeLargerThanTheirUse) {
  Arena arena;
  const UOp x = buffer(arena, dtypes::float32, 2, "CPU", 1);
  EXPECT_EQ(evaluate_one(x, {{{1, floats({1, 2, 3})}}, {}}), floats({1, 2}));
  EXPECT_NE(error_of<Error>([&] { evaluate_one(x, {{{1, floats({1})}}, {}}); }).find("buffer 1"),
            std::string::npos);
  EXPECT_NE(error_of<Error>([&] { evaluate_one(x, {{{1, ints({1, 2})}}, {}}); }).find("int32"),
            std::string::npos);
  EXPECT_NE(error_of<Error>([&] { evaluate_one(x); }).find("no binding"), std::string::npos);
}

TEST(EvaluateTensor, VariablesAreBoundByTheCallOrTheGraph) {
  Arena arena;
  const UOp n = variable(arena, "n", 1, 8);
  EXPECT_EQ(evaluate_one(n * 3, {{}, {{"n", 5}}}).ints()[0], 15);
  EXPECT_EQ(evaluate_one(bind(n, index_const(arena, 4)) + n).ints()[0], 8);
  EXPECT_NE(error_of<Error>([&] { evaluate_one(n); }).find("n has no value"), std::string::npos);
  EXPECT_NE(error_of<IndexError>([&] { evaluate_one(n, {{}, {{"n", 9}}}); }).find("1 to 8"),
            std::string::npos);
  EXPECT_NE(error_of<Error>([&] {
              evaluate_one(bind(n, index_const(arena, 4)), {{}, {{"n", 3}}});
            }).find("already bound"),
            std::string::npos);
}

TEST(EvaluateTensor, IndexOverflowNamesTheNode) {
  Arena arena;
  const UOp big = index_const(arena, std::numeric_limits<int64_t>::max());
  EXPECT_NE(error_of<Error>([&] { evaluate_one(big * big); }).find("MUL"), std::string::npos);
}

TEST(EvaluateTensor, ShapesThatDifferAreRefused) {
  Arena arena;
  const Bindings bindings{{{1, floats({1, 2, 3, 4, 5, 6})}}, {}};
  const UOp n =
      arena.make(Op::ADD, dtypes::float32, {matrix(arena, 2, 3, 1), matrix(arena, 3, 2, 1)});
  EXPECT_NE(error_of<ShapeError>([&] { evaluate_one(n, bindings); }).find("(2,3) and (3,2)"),
            std::string::npos);
}

TEST(EvaluateTensor, AChainOfAMillionNodesIsLinear) {
  Arena arena;
  const Bindings bindings{{{1, ints({0, 5})}}, {}};
  UOp x = buffer(arena, dtypes::int32, 2, "CPU", 1);
  const UOp one = constant(arena, dtypes::int32, 1);
  for (int i = 0; i < 1000000; i++) x = arena.make(Op::ADD, dtypes::int32, {x, one});
  EXPECT_EQ(evaluate_one(x, bindings), ints({1000000, 1000005}));
}

}  // namespace
}  // namespace weft::test
