// INDEX by integers in tensor graphs, and STOREs to the elements that they name.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/shape.h"
#include "ir/spec.h"
#include "tests/unit/evaluate_helpers.h"

namespace weft::test {
namespace {

using Numbers = std::vector<int64_t>;

class EvaluateChosen : public testing::Test {
 protected:
  UOp input(int64_t id, const Numbers& numbers) {
    bindings_.buffers[id] = ints(numbers);
    return buffer(arena_, dtypes::int32, int64_t(numbers.size()), "CPU", id);
  }
  UOp matrix(UOp x, int64_t rows, int64_t columns) {
    const std::vector<Dim> sizes{rows, columns};
    return reshape(x, sizes);
  }
  Numbers run(UOp n) {
    verify(n, Stage::kTensor);
    return evaluate(n, bindings_).at(0).ints();
  }
  UOp number(int64_t value) { return constant(arena_, dtypes::int32, value); }

  Arena arena_;
  Bindings bindings_;
};

TEST_F(EvaluateChosen, ReadsHaveTheShapeOfTheIndexAndZeroOutOfRange) {
  const UOp x = input(1, {10, 11, 12}), i = matrix(input(2, {2, 0, -1, 3}), 2, 2);
  const UOp n = index(x, i);
  EXPECT_EQ(shape_of(n).size(), 2u);
  EXPECT_EQ(run(n), (Numbers{12, 10, 0, 0}));
}

TEST_F(EvaluateChosen, OneIndexPerAxisScalarsForAll) {
  const UOp x = matrix(input(1, {0, 1, 2, 3, 4, 5}), 2, 3), row = input(2, {1, 0, 1});
  const std::vector<UOp> same{row, row}, column{row, number(2)}, outside{row, number(3)};
  EXPECT_EQ(run(index(x, same)), (Numbers{4, 0, 4}));
  EXPECT_EQ(run(index(x, column)), (Numbers{5, 2, 5}));
  EXPECT_EQ(run(index(x, outside)), (Numbers{0, 0, 0}));
}

TEST_F(EvaluateChosen, TheLastOneWrittenStays) {
  const UOp x = input(1, {0, 0, 0, 0}), i = input(2, {1, 3, 1, 9, -1}),
            v = input(3, {1, 2, 3, 4, 5});
  EXPECT_EQ(run(after(x, {index(x, i).assign(v)})), (Numbers{0, 3, 0, 2}));
  EXPECT_EQ(run(after(x, {index(x, i).assign(number(7))})), (Numbers{0, 7, 0, 7}));
}

TEST_F(EvaluateChosen, ThroughAnyView) {
  const UOp x = input(1, {0, 1, 2, 3, 4, 5}), i = input(2, {2, 0}), v = input(3, {7, 8});
  const std::vector<int64_t> swap{1, 0};
  const std::vector<UOp> at{i, number(1)};  // columns 2 and 0 of row 1
  const UOp target = index(permute(matrix(x, 2, 3), swap), at);
  EXPECT_EQ(run(after(x, {target.assign(v)})), (Numbers{0, 1, 2, 8, 4, 7}));
}

TEST_F(EvaluateChosen, CombineOneAfterTheOther) {
  const UOp x = input(1, {1, 1, 1}), i = input(2, {2, 2, 0, 5}), v = input(3, {3, 4, 5, 6});
  EXPECT_EQ(run(after(x, {index(x, i).accumulate(Op::ADD, v)})), (Numbers{6, 1, 8}));
  EXPECT_EQ(run(after(x, {index(x, i).accumulate(Op::MUL, v)})), (Numbers{5, 1, 12}));
  EXPECT_EQ(run(after(x, {index(x, i).accumulate(Op::MAX, v)})), (Numbers{5, 1, 4}));
  EXPECT_EQ(run(after(x, {index(x, i).accumulate(Op::MIN, v)})), (Numbers{1, 1, 1}));
}

TEST_F(EvaluateChosen, ViewsThatOverlapAddUp) {
  const UOp x = input(1, {0, 0, 0, 0}), v = matrix(input(2, {1, 2, 3, 4, 5, 6}), 3, 2);
  const std::vector<Dim> sizes{3, 2}, strides{1, 1}, one{1}, four{4};
  EXPECT_EQ(run(after(x, {strided_view(x, sizes, strides, 0).accumulate(Op::ADD, v)})),
            (Numbers{1, 5, 9, 6}));
  const UOp y = input(3, {5}), w = input(4, {1, 2, 3, 4});
  EXPECT_EQ(run(after(y, {expand(reshape(y, one), four).accumulate(Op::ADD, w)})), (Numbers{15}));
  EXPECT_EQ(run(after(y, {expand(y, four).accumulate(Op::ADD, number(2))})), (Numbers{13}));
}

TEST_F(EvaluateChosen, TextReadsBack) {
  const UOp x = input(1, {1, 1, 1}), i = input(2, {2, 2, 0});
  const UOp n = after(x, {index(x, i).accumulate(Op::MAX, i), x.assign(i)});
  const std::string text = print(n);
  EXPECT_NE(text.find("STORE void (%4, %3) MAX"), std::string::npos) << text;
  EXPECT_EQ(print(parse(arena_, text)), text);
  EXPECT_EQ(parse(arena_, text), n);
}

TEST_F(EvaluateChosen, WhatDoesNotFitIsRefused) {
  const UOp x = input(1, {1, 1, 1, 1}), i = input(2, {2, 2, 0}), v = input(3, {1, 2});
  const std::vector<UOp> two{i, i}, differ{i, v};
  EXPECT_NE(error_of<ShapeError>([&] { index(x, two); }).find("takes 1 indices"),
            std::string::npos);
  EXPECT_NE(error_of<ShapeError>([&] { index(matrix(x, 2, 2), differ); }).find("one shape"),
            std::string::npos);
  EXPECT_NE(
      error_of<DTypeError>([&] { index(x, cast(i, dtypes::float32)); }).find("has dtype float"),
      std::string::npos);
  EXPECT_NE(error_of<ShapeError>([&] { index(x, i).assign(v); }).find("the value has shape"),
            std::string::npos);
  EXPECT_NE(
      error_of<SpecError>([&] { index(x, i).accumulate(Op::SUB, i); }).find("combines by SUB"),
      std::string::npos);
  const std::vector<std::pair<Dim, Dim>> padding{{1, 0}};
  const UOp padded = index(pad(x, padding), i).assign(i);
  EXPECT_NE(error_of<Error>([&] { verify(after(x, {padded}), Stage::kTensor); }).find("padded"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::test
