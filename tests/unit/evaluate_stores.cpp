// Writes in tensor graphs: AFTER(old, STORE(view of old, value)) is old with the region replaced.
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
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

class EvaluateStores : public testing::Test {
 protected:
  UOp input(int64_t id, const std::vector<int64_t>& numbers) {
    bindings_.buffers[id] = ints(numbers);
    return buffer(arena_, dtypes::int32, int64_t(numbers.size()), "CPU", id);
  }
  std::vector<int64_t> run(UOp n) { return evaluate(n, bindings_).at(0).ints(); }
  static UOp slice(UOp x, int64_t begin, int64_t end) {
    const std::vector<std::pair<Dim, Dim>> box{{begin, end}};
    return shrink(x, box);
  }
  static UOp view(UOp x, const std::vector<Dim>& sizes, const std::vector<Dim>& strides,
                  int64_t offset) {
    return strided_view(x, sizes, strides, offset);
  }
  UOp number(int64_t value) { return constant(arena_, dtypes::int32, value); }

  Arena arena_;
  Bindings bindings_;
};

using Numbers = std::vector<int64_t>;

TEST_F(EvaluateStores, ReplaceTheRegionAndLeaveTheRest) {
  const UOp x = input(1, {0, 1, 2, 3, 4}), v = input(2, {7, 8});
  const UOp next = after(x, {slice(x, 1, 3).assign(v)});
  EXPECT_EQ(run(next), (Numbers{0, 7, 8, 3, 4}));
  EXPECT_EQ(run(x), (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(bindings_.buffers[1], ints({0, 1, 2, 3, 4}));
}

TEST_F(EvaluateStores, GoThroughEveryKindOfView) {
  const UOp x = input(1, {0, 1, 2, 3, 4, 5});
  const std::vector<Dim> two_by_three{2, 3};
  const std::vector<int64_t> swap{1, 0}, first{0};
  const std::vector<std::pair<Dim, Dim>> lower{{1, 3}, {0, 2}};
  const UOp target = shrink(flip(permute(reshape(x, two_by_three), swap), first), lower);
  // 0 1 2  swapped 0 3  flipped 2 5  from 1  1 4
  // 3 4 5          1 4          1 4          0 3
  //                2 5          0 3
  const std::vector<Dim> square{2, 2};
  const UOp v = reshape(input(2, {10, 11, 12, 13}), square);
  EXPECT_EQ(run(after(x, {target.assign(v)})), (Numbers{12, 10, 2, 13, 11, 5}));
}

TEST_F(EvaluateStores, OverlappingWritesThroughOneViewLeaveTheLast) {
  const UOp x = input(1, {0, 0, 0, 0});
  // Rows of two that overlap by one: (0,1) (1,2) (2,3)
  const UOp target = view(x, {3, 2}, {1, 1}, 0);
  const std::vector<Dim> shape{3, 2};
  const UOp v = reshape(input(2, {1, 2, 3, 4, 5, 6}), shape);
  EXPECT_EQ(run(after(x, {target.assign(v)})), (Numbers{1, 3, 5, 6}));
}

TEST_F(EvaluateStores, OfOneAfterHappenInTheirOrder) {
  const UOp x = input(1, {0, 0, 0, 0});
  const UOp a = slice(x, 0, 3).assign(number(1)), b = slice(x, 1, 4).assign(number(2));
  EXPECT_EQ(run(after(x, {a, b})), (Numbers{1, 2, 2, 2}));
  EXPECT_EQ(run(after(x, {b, a})), (Numbers{1, 1, 1, 2}));
}

TEST_F(EvaluateStores, ReadTheVersionTheyWereBuiltOn) {
  // x[1:] = x[:-1], then x[:-1] = x[1:] of the new version; a reader of the old one sees the old
  // one
  const UOp x = input(1, {1, 2, 3, 4});
  const UOp v1 = after(x, {slice(x, 1, 4).assign(slice(x, 0, 3))});
  EXPECT_EQ(run(v1), (Numbers{1, 1, 2, 3}));
  const UOp v2 = after(v1, {slice(v1, 0, 3).assign(slice(v1, 1, 4))});
  EXPECT_EQ(run(v2), (Numbers{1, 2, 3, 3}));
  const std::vector<Array> both = evaluate(sink({v1 + x, v2}), bindings_);
  EXPECT_EQ(both[0].ints(), (Numbers{2, 3, 5, 7}));
  EXPECT_EQ(both[1].ints(), (Numbers{1, 2, 3, 3}));
}

TEST_F(EvaluateStores, FillWithAScalarEvenAnExpandedView) {
  const UOp x = input(1, {0, 1, 2, 3});
  const std::vector<Dim> column{2, 1}, wide{2, 5};
  const UOp target = expand(reshape(slice(x, 1, 3), column), wide);
  EXPECT_EQ(run(after(x, {target.assign(number(9))})), (Numbers{0, 9, 9, 3}));
}

TEST_F(EvaluateStores, ReachComputedVersions) {
  const UOp x = input(1, {1, 2, 3}), sum = x + x;
  EXPECT_EQ(run(after(sum, {slice(sum, 0, 1).assign(number(0))})), (Numbers{0, 4, 6}));
}

TEST_F(EvaluateStores, GoThroughABitcast) {
  const UOp x = input(1, {0, 0});
  const UOp as_float = arena_.make(Op::BITCAST, dtypes::float32, {slice(x, 1, 2)});
  const UOp store =
      arena_.make(Op::STORE, dtypes::void_, {as_float, constant(arena_, dtypes::float32, -1.0)});
  EXPECT_EQ(run(arena_.make(Op::AFTER, dtypes::int32, {x, store})),
            (Numbers{0, int32_t(0xbf800000)}));
}

TEST_F(EvaluateStores, RefuseTargetsThatAreNoViewOfTheVersion) {
  const UOp x = input(1, {1, 2}), y = input(2, {1, 2});
  const UOp other = arena_.make(Op::AFTER, dtypes::int32, {x, slice(y, 0, 1).assign(number(1))});
  EXPECT_NE(error_of<InternalError>([&] { run(other); }).find("no view"), std::string::npos);
}

// Random programs of overlapping writes against a vector that is written in place.
TEST_F(EvaluateStores, AgreeWithWritesInPlace) {
  std::mt19937_64 random(11);
  auto pick = [&](int64_t lo, int64_t hi) {
    return lo + int64_t(random() % uint64_t(hi - lo + 1));
  };
  for (int program = 0; program < 50; program++) {
    constexpr int64_t size = 12;
    Numbers content(size);
    std::iota(content.begin(), content.end(), int64_t(0));
    UOp version = input(1, content);
    for (int write = 0; write < 6; write++) {
      const int64_t rows = pick(1, 3), columns = pick(1, 3);
      const int64_t step = pick(0, 2), inner = pick(0, 2), offset = pick(0, 2);
      const UOp target = view(version, {rows, columns}, {step, inner}, offset);
      const int64_t from = pick(0, size - rows * columns);
      const std::vector<Dim> shape{rows, columns};
      const UOp value = reshape(slice(version, from, from + rows * columns), shape);
      const UOp store = arena_.make(Op::STORE, dtypes::void_, {target, value});
      version = arena_.make(Op::AFTER, dtypes::int32, {version, store});
      const Numbers old = content;
      for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
          content[size_t(offset + r * step + c * inner)] = old[size_t(from + r * columns + c)];
        }
      }
    }
    ASSERT_EQ(run(version), content) << "program " << program;
  }
}

TEST_F(EvaluateStores, LongChainsAreEvaluatedInPlace) {
  constexpr int64_t size = 100;
  UOp version = input(1, Numbers(size, 0));
  for (int64_t i = 0; i < 20000; i++) {
    const UOp at = slice(version, i % size, i % size + 1);
    version = after(version, {at.assign(at + 1)});
  }
  EXPECT_EQ(run(version), Numbers(size, 200));
}

}  // namespace
}  // namespace weft::test
