// Legal graphs pass at their stage, and every op has a graph that says what it may be.
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "tests/error/illegal.h"

namespace weft::test {
namespace {

struct Legal {
  std::string_view name;
  Stage stage;
  std::string_view text;  // after kPrelude
};

constexpr Legal kLegal[] = {
    {"views_of_every_kind", kTensor, R"(
%p = PERMUTE float32 (%x) [1, 0]
%a = ADD float32 (%p, %y)
%f2 = FLIP float32 (%a) [0, 1]
%pad = PAD float32 (%f2, %zero, %one, %two, %zero)
%s2 = SHRINK float32 (%pad, %zero, %one, %three, %three)
%v = VIEW float32 (%s2, %three, %two, %minus, %minus, %four)
%c = RESHAPE float32 (%v, %six, %one)
%e = EXPAND float32 (%c, %six, %four)
%root = SINK void (%e))"},
    {"numbers_in_order", kTensor, R"(
%a = IOTA int32 (%six)
%b = IOTA uint8 (%n)
%root = SINK void (%a, %b))"},
    {"strided_view_of_no_elements", kTensor, R"(
%v = VIEW float32 (%buf, %zero, %six, %six)
%root = SINK void (%v))"},
    {"symbolic_sizes", kTensor, R"(
%m = VARIABLE index (%zero, %six) "m"
%bound = BIND index (%n, %two)
%nm = MUL index (%n, %m)
%b = BUFFER float32 (%nm, %cpu) 1
%v = RESHAPE float32 (%b, %m, %one, %n)
%e = EXPAND float32 (%v, %m, %bound, %n)
%w = SHRINK float32 (%v, %zero, %zero, %zero, %m, %one, %one)
%root = SINK void (%e, %w))"},
    {"reductions_and_copies", kTensor, R"(
%sum = REDUCE_AXIS float32 (%x) ADD [0, 1]
%most = REDUCE_AXIS float32 (%x) MAX []
%gpu = DEVICE void "CUDA:1"
%c = COPY float32 (%sum, %gpu)
%t = CONTIGUOUS float32 (%most)
%d = DETACH float32 (%t)
%b = CONTIGUOUS_BACKWARD float32 (%d)
%root = SINK void (%c, %b))"},
    {"scans", kTensor, R"(
%sum = SCAN float32 (%x) ADD [1]
%most = SCAN float32 (%x) MAX [0]
%decaying = SCAN float32 (%sum, %most) ADD [0]
%root = SINK void (%decaying))"},
    {"store_to_views_of_versions", kTensor, R"(
%box = SHRINK float32 (%x, %one, %zero, %two, %three)
%value = SHRINK float32 (%x, %zero, %zero, %one, %three)
%w1 = STORE void (%box, %value)
%v1 = AFTER float32 (%buf, %w1)
%t = RESHAPE float32 (%v1, %three, %two)
%u = PERMUTE float32 (%t) [1, 0]
%w2 = STORE void (%u, %x)
%w3 = STORE void (%t, %f)
%v2 = AFTER float32 (%v1, %w2, %w3)
%root = SINK void (%v2, %v1))"},
    {"store_to_a_computed_version", kTensor, R"(
%sum = ADD float32 (%x, %f)
%row = SHRINK float32 (%sum, %zero, %zero, %one, %three)
%w = STORE void (%row, %f)
%v = AFTER float32 (%sum, %w)
%w0 = STORE void (%f, %f)
%v0 = AFTER float32 (%f, %w0)
%root = SINK void (%v, %v0))"},
    {"scalar_fills_an_expanded_view", kTensor, R"(
%col = RESHAPE float32 (%buf, %six, %one)
%e = EXPAND float32 (%col, %six, %four)
%w = STORE void (%e, %f)
%v = AFTER float32 (%buf, %w)
%root = SINK void (%v))"},
    {"store_to_the_bits_of_a_version", kTensor, R"(
%bits = BITCAST int32 (%x)
%col = SHRINK int32 (%bits, %zero, %one, %two, %two)
%w = STORE void (%col, %i)
%v = AFTER float32 (%buf, %w)
%root = SINK void (%v))"},
    {"expand_that_repeats_nothing_is_written", kTensor, R"(
%e = EXPAND float32 (%x, %two, %three)
%w = STORE void (%e, %x)
%v = AFTER float32 (%buf, %w)
%root = SINK void (%v))"},
    {"ranges_and_buffers", kRangeified, R"(
%e = INDEX float32 (%buf, %r)
%b = BUFFERIZE float32 (%e, %r, %zero) global
%at = INDEX float32 (%b, %s, %zero)
%sum = REDUCE float32 (%at, %s) ADD
%free = REDUCE float32 (%f, %s) ADD
%both = ADD float32 (%sum, %free)
%o = BUFFERIZE float32 (%both) local
%c = COPY float32 (%o, %cpu)
%each = INDEX float32 (%o)
%g = BUFFERIZE float32 (%each) global
%root = SINK void (%g, %c))"},
    {"store_to_elements_of_a_buffer", kRangeified, R"(
%t = INDEX float32 (%buf, %r)
%w = STORE void (%t, %f, %true)
%e = END void (%w, %r)
%v = AFTER float32 (%buf, %e)
%all = STORE void (%v, %f)
%vv = AFTER float32 (%v, %all)
%t2 = INDEX float32 (%vv, %zero)
%b = BUFFERIZE float32 (%t2) global
%root = SINK void (%b))"},
    {"kernels_with_their_arguments", kRangeified, R"(
%v = LOAD float32 (%inr)
%w = STORE void (%outr, %v)
%e = END void (%w, %r)
%ast = SINK void (%e)
%b = BUFFER float32 (%six, %cpu) 1
%k1 = KERNEL void (%ast, %b, %buf, %n) "copy"
%b1 = AFTER float32 (%b, %k1)
%bound = BIND index (%n, %two)
%k2 = KERNEL void (%ast, %buf, %b1, %bound, %i) "copy"
%b2 = AFTER float32 (%buf, %k2)
%root = SINK void (%b2))"},
    {"accumulator", kKernel, R"(
%init_at = AFTER float32 (%reg, %r)
%init = STORE float32 (%init_at, %f)
%i4 = MUL index (%r, %two)
%at = ADD index (%i4, %s)
%p = INDEX ptr<float32, global> (%in, %at)
%x1 = LOAD float32 (%p)
%acc = AFTER float32 (%reg, %init, %s)
%next = ADD float32 (%acc, %x1)
%w = STORE float32 (%acc, %next)
%loop = END void (%w, %s)
%result = AFTER float32 (%reg, %loop)
%o = STORE void (%outr, %result)
%e = END void (%o, %r)
%root = SINK void (%e))"},
    {"reduction_in_a_kernel", kKernel, R"(
%at = ADD index (%r, %s)
%p = INDEX ptr<float32, global> (%in, %at)
%x1 = LOAD float32 (%p)
%sum = REDUCE float32 (%x1, %s) MAX
%o = STORE void (%outr, %sum)
%e = END void (%o, %r)
%root = SINK void (%e))"},
    {"local_memory_and_threads", kKernel, R"(
%g = SPECIAL index (%four) "gidx0"
%l = DEFINE_LOCAL ptr<float32, local> (%four) 0
%p = INDEX ptr<float32, global> (%in, %g)
%valid = CMPLT bool (%g, %three)
%v = LOAD float32 (%p, %valid, %f)
%lp = INDEX ptr<float32, local> (%l, %g)
%w = STORE void (%lp, %v)
%b = BARRIER void (%w)
%l2 = AFTER ptr<float32, local> (%l, %b)
%lp2 = INDEX ptr<float32, local> (%l2, %zero)
%v2 = LOAD float32 (%lp2)
%op = INDEX ptr<float32, global> (%out, %g)
%o = STORE void (%op, %v2, %valid)
%count = DEFINE_GLOBAL int32 2
%more = STORE int32 (%count, %i)
%root = SINK void (%o, %more))"},
    {"vectors", kKernel, R"(
%p = INDEX ptr<float32, global> (%in, %zero)
%p4 = CAST ptr<float32x4, global> (%p)
%v = LOAD float32x4 (%p4)
%c = CONST float32x4 2.0
%m = MULACC float32x4 (%v, %c, %v)
%lo = GEP float32x2 (%m) [1, 0]
%l0 = GEP float32 (%lo) [0]
%all = VECTORIZE float32x4 (%l0, %f, %l0, %f)
%less = CMPLT boolx4 (%all, %v)
%pick = WHERE float32x4 (%less, %all, %v)
%as = BITCAST int32x4 (%pick)
%back = BITCAST float32x4 (%as)
%q = INDEX ptr<float32, global> (%out, %zero)
%q4 = CAST ptr<float32x4, global> (%q)
%w = STORE void (%q4, %back)
%root = SINK void (%w))"},
    {"products_of_tiles", kKernel, R"(
%size = CONST index 8192
%a = DEFINE_GLOBAL ptr<bfloat16, global> (%size) 2
%l = DEFINE_LOCAL ptr<bfloat16, local> (%size) 0
%sums = DEFINE_REG float32x32 1
%c = CONST float32x32 0.0
%init = STORE float32x32 (%sums, %c)
%from = INDEX ptr<bfloat16, global> (%a, %zero)
%from8 = CAST ptr<bfloat16x8, global> (%from)
%to = INDEX ptr<bfloat16, local> (%l, %zero)
%to8 = CAST ptr<bfloat16x8, local> (%to)
%fetch = FETCH void (%to8, %from8, %true)
%box = FETCH_BOX void (%to, %a, %r, %true, %zero, %zero) [64, 1, 0, 64, 1, 128, 64]
%group = COMMIT void (%fetch, %box)
%wait = WAIT void (%group, %r) 0
%b = BARRIER void (%wait)
%l2 = AFTER ptr<bfloat16, local> (%l, %b)
%tile = INDEX ptr<bfloat16, local> (%l2, %zero)
%before = AFTER float32x32 (%sums, %init, %r)
%product = WMMA float32x32 (%before, %tile, %tile, %three) [64, 0, 1]
%w = STORE float32x32 (%before, %product)
%e = END void (%w, %r)
%total = AFTER float32x32 (%sums, %e)
%lane = LANE float32 (%total, %six)
%q = INDEX ptr<float32, global> (%out, %zero)
%o = STORE void (%q, %lane)
%root = SINK void (%o))"},
    {"program", kProgram, R"(
%c = CONST int32 4
%d = DEFINE_GLOBAL ptr<float32, global> (%c) 0
%lo = CONST int32 1
%m = VARIABLE int32 (%lo, %c) "m"
%g = SPECIAL int32 (%c) "lidx0"
%init = STORE float32 (%reg, %f)
%k = RANGE int32 (%m) 0:loop
%acc = AFTER float32 (%reg, %init, %k)
%p = INDEX ptr<float32, global> (%d, %k)
%v = LOAD float32 (%p)
%sum = ADD float32 (%acc, %v)
%w = STORE float32 (%acc, %sum)
%e = END void (%w, %k)
%total = AFTER float32 (%reg, %e)
%gate = CMPLT bool (%g, %lo)
%if = IF void (%gate, %e)
%q = INDEX ptr<float32, global> (%d, %g)
%o = STORE void (%q, %total)
%endif = ENDIF void (%if)
%b = BARRIER void (%o)
%root = LINEAR void (%c, %d, %lo, %m, %g, %reg, %f, %init, %k, %acc, %p, %v, %sum, %w, %e, %total, %gate, %if, %q, %o, %endif, %b))"},
    {"loops_that_close_together", kProgram, R"(
%c = CONST int32 4
%k = RANGE int32 (%c) 0:loop
%m = RANGE int32 (%c) 1:unroll
%at = ADD int32 (%k, %m)
%d = DEFINE_GLOBAL ptr<float32, global> (%c) 0
%p = INDEX ptr<float32, global> (%d, %at)
%w = STORE void (%p, %f)
%e = END void (%w, %k, %m)
%root = LINEAR void (%c, %d, %f, %k, %m, %at, %p, %w, %e))"},
};

class LegalGraph : public testing::TestWithParam<Legal> {};

TEST_P(LegalGraph, Passes) {
  Arena arena;
  const UOp root = parse_after_prelude(arena, GetParam().text);
  const std::optional<Violation> v = find_violation(root, GetParam().stage);
  EXPECT_FALSE(v.has_value()) << v->message << "\n" << neighbourhood(v->node);
  EXPECT_NO_THROW(verify(root, GetParam().stage));
}

std::string name_of_case(const testing::TestParamInfo<Legal>& info) {
  return std::string(info.param.name);
}

INSTANTIATE_TEST_SUITE_P(Spec, LegalGraph, testing::ValuesIn(kLegal), name_of_case);

TEST(Spec, HasAGraphForEveryOp) {
  std::array<bool, kOpCount> seen{};
  const auto mark = [&](std::string_view text) {
    Arena arena;
    for (UOp n : toposort(parse_after_prelude(arena, text))) seen[size_t(n.op())] = true;
  };
  for (const Legal& l : kLegal) mark(l.text);
  for (const Illegal& i : all_illegal()) mark(i.text);
  for (size_t op = 0; op < kOpCount; op++) EXPECT_TRUE(seen[op]) << name_of(Op(op));
}

TEST(Spec, RefusesSomeGraphOfEveryOp) {
  std::array<bool, kOpCount> refused{};
  for (const Illegal& i : all_illegal()) {
    Arena arena;
    const UOp root = parse_after_prelude(arena, i.text);
    refused[size_t(find_violation(root, i.stage)->node.op())] = true;
  }
  for (size_t op = 0; op < kOpCount; op++) EXPECT_TRUE(refused[op]) << name_of(Op(op));
}

TEST(Spec, HasOneWrite) {
  for (size_t op = 0; op < kOpCount; op++) {
    EXPECT_EQ(name_of(Op(op)).find("ASSIGN"), std::string_view::npos) << name_of(Op(op));
  }
  EXPECT_FALSE(parse_op("ASSIGN").has_value());
  for (const Stage s : kStages) EXPECT_TRUE(is_legal_in(Op::STORE, s));
}

}  // namespace
}  // namespace weft::test
