// Bounds of + - * by constants, min, max, and // and % by positive constants are exact; all others
// hold (the fuzz program checks that on every expression it makes).
#include <algorithm>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/scalar.h"

namespace weft {
namespace {

// The least and greatest value of op(x, c) for x in [lo, hi], by trying them all.
Interval tried(Op op, int64_t lo, int64_t hi, int64_t c) {
  Interval out{Interval::kHigh, Interval::kLow};
  for (int64_t x = lo; x <= hi; x++) {
    const uint64_t v[] = {uint64_t(x), uint64_t(c)};
    const auto r = int64_t(*evaluate_scalar(op, dtypes::index, dtypes::index, v));
    out = {std::min(out.lo, r), std::max(out.hi, r)};
  }
  return out;
}

TEST(Bounds, AreExactOnOneVariable) {
  Arena a;
  for (int64_t lo = -13; lo <= 13; lo += 3) {
    for (int64_t hi = lo; hi <= lo + 20; hi += 4) {
      const UOp x = variable(a, "x", lo, hi);
      for (int64_t c = -7; c <= 9; c++) {
        for (const Op op : {Op::ADD, Op::SUB, Op::MUL, Op::MAX, Op::MIN}) {
          EXPECT_EQ(bounds(binary(op, x, index_const(a, c))), tried(op, lo, hi, c));
        }
        if (c <= 0) continue;
        for (const Op op : {Op::IDIV, Op::MOD}) {
          EXPECT_EQ(bounds(binary(op, x, index_const(a, c))), tried(op, lo, hi, c))
              << name_of(op) << " " << lo << ".." << hi << " by " << c;
        }
      }
    }
  }
}

TEST(Bounds, KnowRangesVariablesAndComparisons) {
  Arena a;
  const UOp r = range(a, 8, 0), n = variable(a, "n", 3, 17);
  EXPECT_EQ(bounds(r), (Interval{0, 7}));
  EXPECT_EQ(bounds(range(a, n, 1)), (Interval{0, 16}));
  EXPECT_EQ(bounds(n < 18), (Interval{1, 1}));
  EXPECT_EQ(bounds(n < 3), (Interval{0, 0}));
  EXPECT_EQ(bounds(n < 4), (Interval{0, 1}));
  EXPECT_EQ(bounds(where(r < 4, r, r * 2)), (Interval{0, 14}));
}

TEST(Bounds, OfWhatMayWrapAreTheDtypesOwn) {
  Arena a;
  const UOp x = variable(a, "x", 0, 100, dtypes::int8);
  EXPECT_EQ(bounds(x + 27), (Interval{27, 127}));
  EXPECT_EQ(bounds(x + 28), (Interval{-128, 127}));
  const int64_t most = std::numeric_limits<int64_t>::max();
  const UOp y = variable(a, "y", 5, most - 1, dtypes::int64);
  EXPECT_EQ(bounds(y + 5).lo, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(bounds(max(y, constant(a, dtypes::int64, 9))).lo, 9);
  EXPECT_EQ(bounds(constant_bits(a, dtypes::uint64, UINT64_MAX)).hi, Interval::kHigh);
}

TEST(Bounds, OfBitsHoldWithSigns) {
  Arena a;
  for (int64_t lo = -13; lo <= 13; lo += 3) {
    for (int64_t hi = lo; hi <= lo + 20; hi += 4) {
      const UOp x = variable(a, "x", lo, hi);
      for (int64_t c = -9; c <= 9; c++) {
        for (const Op op : {Op::AND, Op::OR, Op::XOR}) {
          const Interval known = bounds(binary(op, x, index_const(a, c)));
          EXPECT_TRUE(tried(op, lo, hi, c).within(known))
              << name_of(op) << " " << lo << ".." << hi << " by " << c;
          EXPECT_TRUE(known.within({-64, 63}));
        }
      }
      const UOp sign = binary(Op::SHR, cast(x, dtypes::int64), constant(a, dtypes::int64, 63));
      EXPECT_EQ(bounds(sign), (Interval{lo < 0 ? -1 : 0, hi < 0 ? -1 : 0}));
    }
  }
  const UOp all = variable(a, "all", Interval::kLow, Interval::kHigh, dtypes::int64);
  EXPECT_EQ(bounds(binary(Op::SHR, all, constant(a, dtypes::int64, 63))), (Interval{-1, 0}));
  const UOp large = constant_bits(a, dtypes::uint64, UINT64_MAX);
  EXPECT_EQ(bounds(binary(Op::SHR, large, constant(a, dtypes::uint64, 63))), (Interval{0, 1}));
}

// A quotient by multiplication, as code has it.
TEST(Bounds, OfADivisionThatIsDecomposedAreFew) {
  Arena a;
  const auto i64 = [&](int64_t v) { return constant(a, dtypes::int64, v); };
  const UOp x = variable(a, "x", -17, 2, dtypes::int64);
  const UOp sign = binary(Op::SHR, x, i64(63));
  const UOp scaled = binary(Op::SHR, binary(Op::XOR, x, sign) * i64(13), i64(8));
  EXPECT_EQ(bounds(binary(Op::XOR, scaled, sign)), (Interval{-1, 0}));
}

TEST(Bounds, OfALongChainAreComputedWithoutRecursion) {
  Arena a;
  UOp x = range(a, 8, 0);
  for (int i = 0; i < 1'000'000; i++) x = a.make(Op::ADD, dtypes::index, {x, index_const(a, 1)});
  EXPECT_EQ(bounds(x), (Interval{1'000'000, 1'000'007}));
}

}  // namespace
}  // namespace weft
