// Programs: a LINEAR list runs in its own order.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/parse.h"
#include "ir/spec.h"
#include "tests/unit/evaluate_helpers.h"

namespace weft::test {
namespace {

// data0[i] = sum of row i of data1
constexpr std::string_view kRowSums = R"(
%two = CONST int32 2
%three = CONST int32 3
%six = CONST int32 6
%zero = CONST int32 0
%out = DEFINE_GLOBAL ptr<int32, global> (%two) 0
%in = DEFINE_GLOBAL ptr<int32, global> (%six) 1
%reg = DEFINE_REG int32 0
%i = RANGE int32 (%two) 0:loop
%place = AFTER int32 (%reg, %i)
%init = STORE int32 (%place, %zero)
%r = RANGE int32 (%three) 1:reduce
%row = MUL int32 (%i, %three)
%at = ADD int32 (%row, %r)
%p = INDEX ptr<int32, global> (%in, %at)
%x = LOAD int32 (%p)
%acc = AFTER int32 (%reg, %init, %r)
%sum = ADD int32 (%acc, %x)
%step = STORE int32 (%acc, %sum)
%e = END void (%step, %r)
%total = AFTER int32 (%reg, %e)
%q = INDEX ptr<int32, global> (%out, %i)
%store = STORE void (%q, %total)
%f = END void (%store, %i)
)";

class EvaluateProgram : public testing::Test {
 protected:
  UOp program(std::string_view text, std::string_view list) {
    return parse(arena_, std::string(text) + "%root = LINEAR void (" + std::string(list) + ")\n");
  }
  Arena arena_;
  Bindings bindings_;
};

TEST_F(EvaluateProgram, LoopsOpenAndClose) {
  bindings_.buffers[1] = ints({1, 2, 3, 4, 5, 6});
  const UOp root = program(kRowSums,
                           "%two, %three, %six, %zero, %out, %in, %reg, %i, %place, %init, %row, "
                           "%r, %at, %p, %x, %acc, %sum, %step, %e, %total, %q, %store, %f");
  verify(root, Stage::kProgram);
  EXPECT_EQ(evaluate(root, bindings_).at(0), Array::nothing());
  EXPECT_EQ(bindings_.buffers.at(0), ints({6, 15}));
}

TEST_F(EvaluateProgram, LeavesAndAftersNeedNotBeListed) {
  bindings_.buffers[1] = ints({1, 2, 3, 4, 5, 6});
  evaluate(program(kRowSums, "%i, %init, %row, %r, %at, %p, %x, %sum, %step, %e, %q, %store, %f"),
           bindings_);
  EXPECT_EQ(bindings_.buffers.at(0), ints({6, 15}));
}

TEST_F(EvaluateProgram, TheListIsTheOrder) {
  bindings_.buffers[1] = ints({1, 2, 3, 4, 5, 6});
  // The start of the register stands in the inner loop: only the last element of a row is left.
  evaluate(program(kRowSums, "%i, %row, %r, %init, %at, %p, %x, %sum, %step, %e, %q, %store, %f"),
           bindings_);
  EXPECT_EQ(bindings_.buffers.at(0), ints({3, 6}));
}

TEST_F(EvaluateProgram, OneEndClosesSeveralLoops) {
  const UOp root = program(R"(
%two = CONST int32 2
%four = CONST int32 4
%out = DEFINE_GLOBAL ptr<int32, global> (%four) 0
%i = RANGE int32 (%two) 0:loop
%j = RANGE int32 (%two) 1:loop
%row = MUL int32 (%i, %two)
%at = ADD int32 (%row, %j)
%p = INDEX ptr<int32, global> (%out, %at)
%w = STORE void (%p, %row)
%e = END void (%w, %i, %j)
)",
                           "%two, %four, %out, %i, %row, %j, %at, %p, %w, %e");
  verify(root, Stage::kProgram);
  evaluate(root, bindings_);
  EXPECT_EQ(bindings_.buffers.at(0), ints({0, 0, 2, 2}));
}

constexpr std::string_view kThreads = R"(
%four = CONST int32 4
%two = CONST int32 2
%one = CONST int32 1
%out = DEFINE_GLOBAL ptr<int32, global> (%four) 0
%local = DEFINE_LOCAL ptr<int32, local> (%four) 0
%l = SPECIAL int32 (%four) "lidx0"
%lp = INDEX ptr<int32, local> (%local, %l)
%fill = STORE void (%lp, %l)
%b = BARRIER void (%fill)
%gate = CMPLT bool (%l, %two)
%if = IF void (%gate, %b)
%other = XOR int32 (%l, %one)
%ready = AFTER ptr<int32, local> (%local, %b)
%lq = INDEX ptr<int32, local> (%ready, %other)
%x = LOAD int32 (%lq)
%q = INDEX ptr<int32, global> (%out, %l)
%w = STORE void (%q, %x)
%endif = ENDIF void (%if)
)";

TEST_F(EvaluateProgram, BlocksRunWhereTheirGateHolds) {
  bindings_.buffers[0] = ints({9, 9, 9, 9});
  const UOp root = program(kThreads,
                           "%four, %two, %one, %out, %local, %l, %lp, %fill, %b, %gate, %if, "
                           "%other, %ready, %lq, %x, %q, %w, %endif");
  verify(root, Stage::kProgram);
  evaluate(root, bindings_);
  EXPECT_EQ(bindings_.buffers.at(0), ints({1, 0, 9, 9}));
}

TEST_F(EvaluateProgram, ABarrierInABlockThatSomeThreadsSkipIsRefused) {
  const UOp root = program(kThreads, "%l, %lp, %fill, %gate, %if, %b, %endif");
  EXPECT_NE(error_of<InternalError>([&] { evaluate(root, bindings_); }).find("not every thread"),
            std::string::npos);
}

TEST_F(EvaluateProgram, ListsThatDoNotNestAreRefused) {
  auto error = [&](std::string_view list) {
    const UOp root = program(kRowSums, list);
    return error_of<InternalError>([&] { evaluate(root, bindings_); });
  };
  EXPECT_NE(error("%i, %init").find("does not close"), std::string::npos);
  EXPECT_NE(error("%i, %r, %f").find("innermost"), std::string::npos);
  EXPECT_NE(error("%i, %at, %f").find("before one of its sources"), std::string::npos);
}

}  // namespace
}  // namespace weft::test
