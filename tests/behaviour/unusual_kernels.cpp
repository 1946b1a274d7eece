// Kernels that the spec allows and no pass of the schedule makes: each target runs them as they are
// evaluated.
#include <ostream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "codegen/lower.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/parse.h"
#include "ir/spec.h"
#include "render/render.h"

namespace weft {
namespace {

Target group_target() {
  Target target{.name = "groups"};
  target.groups.threads = 64;
  target.groups.most_threads = {64, 64, 64};
  target.groups.most_groups = {64, 64, 64};
  target.vector_arithmetic = false;
  target.limits.sequences = false;
  return target;
}

struct Unusual {
  std::string_view name;
  std::string_view kernel;  // after the prelude
};
std::ostream& operator<<(std::ostream& out, const Unusual& u) { return out << u.name; }

constexpr std::string_view kPrelude = R"(
%n = CONST index 12
%two = CONST index 2
%three = CONST index 3
%four = CONST index 4
%out = DEFINE_GLOBAL ptr<int32, global> (%n) 0
%in = DEFINE_GLOBAL ptr<int32, global> (%n) 1
%r = RANGE index (%n) 0:loop
%outr = INDEX ptr<int32, global> (%out, %r)
%inr = INDEX ptr<int32, global> (%in, %r)
%x = LOAD int32 (%inr)
)";

constexpr Unusual kUnusual[] = {
    {"an_element_after_a_write", R"(
%w = STORE void (%outr, %x)
%e = END void (%w, %r)
%later = AFTER ptr<int32, global> (%outr, %e)
%v = LOAD int32 (%later)
%d = ADD int32 (%v, %x)
%w2 = STORE void (%outr, %d)
%e2 = END void (%w2, %r)
%s = SINK void (%e2)
)"},
    {"a_second_loop_of_a_range_that_waits_for_the_first", R"(
%w = STORE void (%outr, %x)
%e = END void (%w, %r)
%again = AFTER index (%r, %e)
%place = INDEX ptr<int32, global> (%out, %again)
%d = ADD int32 (%x, %x)
%w2 = STORE void (%place, %d)
%e2 = END void (%w2, %r)
%s = SINK void (%e2)
)"},
    {"a_range_that_is_reduced_and_a_loop", R"(
%b = RANGE index (%four) 2:loop
%p = INDEX ptr<int32, global> (%in, %b)
%v = LOAD int32 (%p)
%o = INDEX ptr<int32, global> (%out, %b)
%w = STORE void (%o, %v)
%e = END void (%w, %b)
%sum = REDUCE int32 (%v, %b) ADD
%o2 = INDEX ptr<int32, global> (%out, %four)
%w2 = STORE void (%o2, %sum)
%s = SINK void (%e, %w2)
)"},
    {"two_reductions_of_sizes_that_change", R"(
%a = RANGE index (%three) 1:reduce
%b = RANGE index (%a) 2:reduce
%i = ADD index (%a, %b)
%p = INDEX ptr<int32, global> (%in, %i)
%v = LOAD int32 (%p)
%sum = REDUCE int32 (%v, %a, %b) ADD
%o = INDEX ptr<int32, global> (%out, %two)
%w = STORE void (%o, %sum)
%most = REDUCE int32 (%v, %a, %b) MAX
%o2 = INDEX ptr<int32, global> (%out, %three)
%w2 = STORE void (%o2, %most)
%s = SINK void (%w, %w2)
)"},
    {"a_loop_whose_size_changes_with_a_parallel_one", R"(
%a = RANGE index (%two) 1:loop
%b = RANGE index (%a) 2:loop
%f = MUL index (%a, %four)
%i = ADD index (%f, %b)
%p = INDEX ptr<int32, global> (%in, %i)
%v = LOAD int32 (%p)
%o = INDEX ptr<int32, global> (%out, %i)
%w = STORE void (%o, %v)
%e = END void (%w, %a, %b)
%s = SINK void (%e)
)"},
    {"a_parallel_loop_in_one_that_writes_the_same", R"(
%a = RANGE index (%three) 1:loop
%k = CAST int32 (%a)
%d = ADD int32 (%x, %k)
%w = STORE void (%outr, %d)
%e = END void (%w, %r)
%e2 = END void (%e, %a)
%s = SINK void (%e2)
)"},
    {"a_register_that_is_read_behind_its_loop", R"(
%reg = DEFINE_REG int32 0
%opened = AFTER int32 (%reg, %r)
%set = STORE int32 (%opened, %x)
%e = END void (%set, %r)
%last = AFTER int32 (%reg, %e)
%b = RANGE index (%three) 1:loop
%o = INDEX ptr<int32, global> (%out, %b)
%w = STORE void (%o, %last)
%e2 = END void (%w, %b)
%s = SINK void (%e2)
)"},
    {"a_register_that_waits_for_itself", R"(
%a = RANGE index (%four) 1:loop
%b = RANGE index (%three) 2:loop
%reg = DEFINE_REG int32 0
%f = MUL index (%b, %four)
%i = ADD index (%f, %a)
%o = INDEX ptr<int32, global> (%out, %i)
%opened = AFTER int32 (%reg, %b)
%both = AFTER int32 (%reg, %opened, %a)
%k = CAST int32 (%i)
%set = STORE int32 (%both, %k)
%value = AFTER int32 (%reg, %set)
%w = STORE void (%o, %value)
%e = END void (%w, %b, %a)
%s = SINK void (%e)
)"},
};

class UnusualKernels : public testing::TestWithParam<Unusual> {};

TEST_P(UnusualKernels, LikeTheEvaluator) {
  Arena arena;
  const UOp kernel = parse(arena, std::string(kPrelude) + std::string(GetParam().kernel));
  verify(kernel, Stage::kKernel);
  const Array zeros = Array::of_ints(dtypes::int32, {12}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const Array numbers = Array::of_ints(dtypes::int32, {12}, {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8});
  Bindings expected{{{0, zeros}, {1, numbers}}, {}};
  evaluate(kernel, expected);
  EXPECT_NE(expected.buffers.at(0).data, zeros.data);
  for (const Target& target : {c_target(), group_target()}) {
    Bindings memory{{{0, zeros}, {1, numbers}}, {}};
    evaluate(lower(kernel, target), memory);
    EXPECT_EQ(memory.buffers.at(0).data, expected.buffers.at(0).data) << target.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnusualKernels, testing::ValuesIn(kUnusual),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace weft
