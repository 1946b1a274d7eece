// What the simplifier makes of the index arithmetic that tensors produce.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/print.h"
#include "ir/shape.h"
#include "ir/spec.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

struct Simplify : testing::Test {
  Arena a;
  UOp i = range(a, 8, 0), j = range(a, 16, 1), k = range(a, 4, 2);
  UOp n = variable(a, "n", 1, 1024);
  UOp x = variable(a, "x", -1000, 1000);  // may be negative

  static std::string text(UOp e) {
    const UOp s = simplify(e);
    EXPECT_EQ(simplify(s), s) << short_form(e);
    return short_form(s);
  }
};

TEST_F(Simplify, QuotientAndRemainderRecombine) {
  EXPECT_EQ(text((x / 4) * 4 + x % 4), "x");
  EXPECT_EQ(text(x % 4 + i + (x / 4) * 4), "x + r0");
  EXPECT_EQ(text((x / 4) * 12 + (x % 4) * 3), "x*3");
  EXPECT_EQ(text(((x / 4) % 8) * 4 + x % 4), "x%32");
  EXPECT_EQ(text((x / n) * n + x % n), "x");
  EXPECT_EQ(text(((x / 3) / 5) * 5 + (x / 3) % 5), "x//3");
}

TEST_F(Simplify, AReshapeAndItsInverseCancel) {
  const UOp flat = (i * 16 + j) * 4 + k;
  EXPECT_EQ(text(flat / 64), "r0");
  EXPECT_EQ(text(flat / 4 % 16), "r1");
  EXPECT_EQ(text(flat % 4), "r2");
  // (8,16,4) -> (32,16) -> (8,16,4)
  const UOp row = flat / 16, column = flat % 16;
  EXPECT_EQ(text((row * 16 + column) / 64), "r0");
  EXPECT_EQ(text((row * 16 + column) / 4 % 16), "r1");
}

TEST_F(Simplify, APermuteOfAReshape) {
  const UOp flat = i * 16 + j;  // (8,16) -> (4,2,16) -> (2,4,16), flattened
  const UOp permuted = (flat / 16 % 2) * 64 + (flat / 32) * 16 + flat % 16;
  EXPECT_EQ(text(permuted), text((i % 2) * 64 + (i / 2) * 16 + j));
}

TEST_F(Simplify, SymbolicSizes) {
  const UOp column = range(a, n, 5);
  EXPECT_EQ(text((i * n + column) / n), "r0");
  EXPECT_EQ(text((i * n + column) % n), "r5");
  EXPECT_EQ(text((i * n * 4 + column) / n), "r0*4");
}

TEST_F(Simplify, CommonFactorsOfDivisions) {
  EXPECT_EQ(text((x * 6 + 3) / 9), "(x*2 + 1)//3");
  EXPECT_EQ(text((x * 6 + 3) % 9), "(x*2 + 1)%3*3");
  EXPECT_EQ(text((x * 12 + i) / 4), "x*3 + r0//4");
  EXPECT_EQ(text((x / 3) / 4), "x//12");
  EXPECT_EQ(text((x % 12) / 4), "x//4%3");
  EXPECT_EQ(text((x % 12) % 4), "x%4");
  EXPECT_EQ(text((x + 7) / 4), "(x + 3)//4 + 1");
  EXPECT_EQ(text((x * 4 + k) / 8), "x//2");
  EXPECT_EQ(text((x * 4 + k) % 8), "r2 + x%2*4");
  EXPECT_EQ(text((x * 7) % 6), "x*7%6");
}

TEST_F(Simplify, DivisionIsTotal) {
  EXPECT_EQ(text(x / 0), "0");
  EXPECT_EQ(text(x % 0), "x");
  EXPECT_EQ(text(x / -1), "x*-1");
  EXPECT_EQ(text(x / -4), "x*-1//4");
  EXPECT_EQ(text(x / x), "x//x");  // x may be 0, and 0 // 0 is 0
  EXPECT_EQ(text(n / n), "1");
  EXPECT_EQ(text(x % x), "0");
}

TEST_F(Simplify, SumsHaveOneForm) {
  EXPECT_EQ(text(j + i), "r0 + r1");
  EXPECT_EQ(text(i + j), "r0 + r1");
  EXPECT_EQ(text((j + 1) + (i + 2)), "r0 + r1 + 3");
  EXPECT_EQ(text(i - i), "0");
  EXPECT_EQ(text((i + j) - (j + i)), "0");
  EXPECT_EQ(text((i + j) * 3 - j * 3), "r0*3");
  EXPECT_EQ(text(n * i * 2 - i * n * 2), "0");
  EXPECT_EQ(text(j * n * i), text(i * (j * n)));
}

TEST_F(Simplify, Comparisons) {
  EXPECT_EQ(text(i < 8), "true");
  EXPECT_EQ(text(i * 16 + j < 32), "r0 < 2");
  EXPECT_EQ(text(i * 16 + j < 33), "r0*16 + r1 < 33");
  EXPECT_EQ(text(i * 4 < 13), "r0 < 4");
  EXPECT_EQ(text(i + 3 < j + 3), "r0 < r1");
  EXPECT_EQ(text(i * 3 < j * 3 + 9), "r0 < r1 + 3");
  EXPECT_EQ(text(i + j < i + 5), "r1 < 5");
  EXPECT_EQ(text(x / 4 < 3), "x < 12");
  EXPECT_EQ(text(~(i < 3)), "2 < r0");
  EXPECT_EQ(text(equal(i * 2, index_const(a, 3))), "false");
  EXPECT_EQ(text(equal(i + 1, j + 1)), "r0 == r1");
  EXPECT_EQ(text(not_equal(i, index_const(a, 9))), "true");
  EXPECT_EQ(text((i < 4) & (i < 6)), "r0 < 4");
  EXPECT_EQ(text((i < 4) & ~(i < 4)), "false");
  EXPECT_EQ(text((i < 3) & ~(i < 3 + 1)), "false");
}

TEST_F(Simplify, GatesNarrowWhatIsBehindThem) {
  EXPECT_EQ(text(where(i < 4, i % 4, i / 4)), "where(r0 < 4, r0, 1)");
  EXPECT_EQ(text(where((i < 4) & (j < 8), (i + j) / 11, index_const(a, 7))),
            "where((r0 < 4) & (r1 < 8), 0, 7)");
  EXPECT_EQ(text(where(x < 0, index_const(a, 0), max(x, index_const(a, 0)))), "where(x < 0, 0, x)");
  EXPECT_EQ(text(where(i < 4, where(i < 6, i, j), k)), "where(r0 < 4, r0, r2)");
  EXPECT_EQ(text((x < 4) & ((x < 3) | (x < 9))), "x < 4");
  const UOp p = define_global(a, dtypes::float32, 64, 0);
  const UOp zero = constant(a, dtypes::float32, 0.0);
  EXPECT_EQ(text(load(index(p, x % 8), (index_const(a, -1) < x) & (x < 8), zero)),
            "load(data0[x], (-1 < x) & (x < 8), 0.0)");
}

TEST_F(Simplify, AGateSaysNothingAboutAnotherLoop) {
  // the inner loop closes r0: its r0 is not the one of the gate
  const UOp ranges[] = {i};
  const UOp inner = reduce(Op::ADD, i % 4, ranges);
  EXPECT_EQ(text(where(i < 4, inner, index_const(a, 0))), "where(r0 < 4, reduce.ADD(r0%4, r0), 0)");
}

TEST_F(Simplify, AGateOfLanesSaysNothingAboutOtherLanes) {
  const UOp p = define_global(a, dtypes::bool_, 8, 0);
  const UOp pointer = a.make(Op::CAST, dtypes::bool_.vec(2).ptr(AddrSpace::kGlobal), {index(p, i)});
  const UOp c = a.make(Op::LOAD, dtypes::bool_.vec(2), {pointer});
  const int64_t first[] = {0}, second[] = {1};
  const UOp lanes[] = {gep(c, second), gep(c, first)};
  const UOp swapped = vectorize(lanes);
  EXPECT_EQ(simplify(c & swapped), c & swapped);
}

TEST_F(Simplify, TensorsKeepTheirShapes) {
  const UOp b = buffer(a, dtypes::int32, 6, "REF", 0);
  const UOp t = reshape(b, std::vector<Dim>{2, 3});
  for (const UOp e : {t - t, t * 0, t < t,
                      where(t < t, constant(a, dtypes::int32, 1), constant(a, dtypes::int32, 1))}) {
    const UOp s = simplify(e);
    EXPECT_EQ(text_of(shape_of(s)), "(2,3)");
    EXPECT_NO_THROW(verify(simplify(reshape(e, std::vector<Dim>{6})), Stage::kTensor));
  }
  EXPECT_EQ(simplify((t + 0) * 1), t);
  // sizes are simplified as ever
  EXPECT_EQ(simplify(reshape(b, std::vector<Dim>{index_const(a, 1) * 2, 3})), t);
}

TEST_F(Simplify, ManyGatesOverOneExpressionAreNoLoop) {
  UOp shared = x;
  for (int d = 0; d < 60; d++) shared = (shared * 3 + d) % (97 + d);
  std::vector<UOp> all;
  for (int64_t d = 0; d < 4000; d++)
    all.push_back(where(x < index_const(a, d % 900 + 10), shared, k));
  const size_t before = a.size();
  EXPECT_NO_THROW(simplify(sink(a, all)));
  EXPECT_LT(a.size() - before, 100'000u);  // what narrowing tries out is not kept
}

TEST_F(Simplify, MachineIntegersWrap) {
  const UOp v = variable(a, "v", -100, 100, dtypes::int8);
  EXPECT_EQ(text((v + 100) + 100), "v + -56");
  EXPECT_EQ(text((v * 4) / 4), "v*4//4");  // v*4 may wrap
  EXPECT_EQ(text((v + 100) < 100), "v + 100 < 100");
  EXPECT_EQ(text(v - v), "0");
  EXPECT_EQ(text(v / -1), "neg(v)");
}

TEST_F(Simplify, FloatsKeepTheirSignsAndNaNs) {
  const UOp f = cast(x, dtypes::float32);
  auto c = [&](double v) { return constant(a, dtypes::float32, v); };
  EXPECT_EQ(simplify(f * c(1.0)), f);
  EXPECT_EQ(simplify(f + c(-0.0)), f);
  EXPECT_NE(simplify(f + c(0.0)), f);  // -0 + 0 is 0
  EXPECT_NE(simplify(f * c(0.0)), c(0.0));
  EXPECT_NE(simplify(f - f), c(0.0));
  const UOp nan = simplify(c(0.0) / c(0.0));
  EXPECT_TRUE(nan.is_const());
  EXPECT_EQ(text(c(-0.0)), "-0.0");
}

TEST_F(Simplify, ASumOfAMillionTermsTakesLinearTime) {
  UOp s = i;
  for (int d = 0; d < 1'000'000; d++) s = a.make(Op::ADD, dtypes::index, {s, d % 2 == 0 ? j : k});
  EXPECT_NO_THROW(simplify(s));
}

}  // namespace
}  // namespace weft
