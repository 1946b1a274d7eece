// One computation in the form of every stage gives the same bits.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/parse.h"
#include "ir/spec.h"

namespace weft::test {
namespace {

// data0[i] = 0.5 + sum over j of data1[i,j] * data2[j], for 3 by 4
constexpr std::string_view kTensor = R"(
%one = CONST index 1
%three = CONST index 3
%four = CONST index 4
%twelve = CONST index 12
%half = CONST float32 0.5
%cpu = DEVICE void "CPU"
%a = BUFFER float32 (%twelve, %cpu) 1
%b = BUFFER float32 (%four, %cpu) 2
%m = RESHAPE float32 (%a, %three, %four)
%row = RESHAPE float32 (%b, %one, %four)
%rows = EXPAND float32 (%row, %three, %four)
%p = MUL float32 (%m, %rows)
%sum = REDUCE_AXIS float32 (%p) ADD [1]
%flat = RESHAPE float32 (%sum, %three)
%r = ADD float32 (%flat, %half)
%root = SINK void (%r))";

constexpr std::string_view kRangeified = R"(
%three = CONST index 3
%four = CONST index 4
%twelve = CONST index 12
%half = CONST float32 0.5
%cpu = DEVICE void "CPU"
%a = BUFFER float32 (%twelve, %cpu) 1
%b = BUFFER float32 (%four, %cpu) 2
%i = RANGE index (%three) 0:loop
%j = RANGE index (%four) 1:reduce
%row = MUL index (%i, %four)
%at = ADD index (%row, %j)
%x = INDEX float32 (%a, %at)
%y = INDEX float32 (%b, %j)
%p = MUL float32 (%x, %y)
%sum = REDUCE float32 (%p, %j) ADD
%r = ADD float32 (%sum, %half)
%out = BUFFERIZE float32 (%r, %i) global
%root = SINK void (%out))";

constexpr std::string_view kKernel = R"(
%three = CONST index 3
%four = CONST index 4
%twelve = CONST index 12
%half = CONST float32 0.5
%zero = CONST float32 0.0
%out = DEFINE_GLOBAL ptr<float32, global> (%three) 0
%a = DEFINE_GLOBAL ptr<float32, global> (%twelve) 1
%b = DEFINE_GLOBAL ptr<float32, global> (%four) 2
%i = RANGE index (%three) 0:loop
%j = RANGE index (%four) 1:reduce
%row = MUL index (%i, %four)
%at = ADD index (%row, %j)
%px = INDEX ptr<float32, global> (%a, %at)
%py = INDEX ptr<float32, global> (%b, %j)
%x = LOAD float32 (%px)
%y = LOAD float32 (%py)
%p = MUL float32 (%x, %y)
%reg = DEFINE_REG float32 0
%place = AFTER float32 (%reg, %i)
%init = STORE float32 (%place, %zero)
%acc = AFTER float32 (%reg, %init, %j)
%sum = ADD float32 (%acc, %p)
%step = STORE float32 (%acc, %sum)
%e = END void (%step, %j)
%total = AFTER float32 (%reg, %e)
%r = ADD float32 (%total, %half)
%q = INDEX ptr<float32, global> (%out, %i)
%w = STORE void (%q, %r)
%f = END void (%w, %i)
%root = SINK void (%f))";

constexpr std::string_view kProgram = R"(
%three = CONST int32 3
%four = CONST int32 4
%twelve = CONST int32 12
%half = CONST float32 0.5
%zero = CONST float32 0.0
%out = DEFINE_GLOBAL ptr<float32, global> (%three) 0
%a = DEFINE_GLOBAL ptr<float32, global> (%twelve) 1
%b = DEFINE_GLOBAL ptr<float32, global> (%four) 2
%i = RANGE int32 (%three) 0:loop
%j = RANGE int32 (%four) 1:reduce
%row = MUL int32 (%i, %four)
%at = ADD int32 (%row, %j)
%px = INDEX ptr<float32, global> (%a, %at)
%py = INDEX ptr<float32, global> (%b, %j)
%x = LOAD float32 (%px)
%y = LOAD float32 (%py)
%p = MUL float32 (%x, %y)
%reg = DEFINE_REG float32 0
%place = AFTER float32 (%reg, %i)
%init = STORE float32 (%place, %zero)
%acc = AFTER float32 (%reg, %init, %j)
%sum = ADD float32 (%acc, %p)
%step = STORE float32 (%acc, %sum)
%e = END void (%step, %j)
%total = AFTER float32 (%reg, %e)
%r = ADD float32 (%total, %half)
%q = INDEX ptr<float32, global> (%out, %i)
%w = STORE void (%q, %r)
%f = END void (%w, %i)
%root = LINEAR void (%three, %four, %twelve, %half, %zero, %out, %a, %b, %reg, %i, %row, %place, %init, %j, %at, %px, %py, %x, %y, %p, %acc, %sum, %step, %e, %total, %r, %q, %w, %f))";

TEST(EvaluateStages, Agree) {
  std::mt19937_64 random(5);
  Bindings bindings;
  for (const auto& [id, size] : {std::pair<int64_t, int64_t>{1, 12}, {2, 4}}) {
    std::vector<double> numbers;
    numbers.reserve(size_t(size));
    for (int64_t i = 0; i < size; i++) numbers.push_back(double(random() % 1000) / 7 - 60);
    bindings.buffers[id] = Array::of_doubles(dtypes::float32, {size}, numbers);
  }
  Arena arena;
  auto run = [&](std::string_view text, Stage stage) {
    const UOp root = parse(arena, text);
    verify(root, stage);
    Bindings own = bindings;
    const std::vector<Array> values = evaluate(root, own);
    return own.buffers.contains(0) ? own.buffers.at(0) : values.at(0);
  };
  const Array want = run(kTensor, Stage::kTensor);
  EXPECT_EQ(want.shape, std::vector<int64_t>{3});
  EXPECT_EQ(run(kRangeified, Stage::kRangeified), want);
  EXPECT_EQ(run(kKernel, Stage::kKernel), want);
  EXPECT_EQ(run(kProgram, Stage::kProgram), want);
}

}  // namespace
}  // namespace weft::test
