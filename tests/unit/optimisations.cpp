// The list of optimisations: its text, when each applies, and what a kernel becomes.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "ir/walk.h"

namespace weft {
namespace {

std::string parse_error(std::string_view text) {
  try {
    parse_opts(text);
  } catch (const ParseError& e) {
    return e.what();
  }
  return "";
}

TEST(OptText, RoundTrip) {
  const OptList all{{OptKind::kTile, 0, 32},  {OptKind::kUpcast, 1, 4}, {OptKind::kVector, 2, 16},
                    {OptKind::kUnroll, 3, 2}, {OptKind::kGroup, 3, 8},  {OptKind::kThread, 0, 0},
                    {OptKind::kStage, 1, 0},  {OptKind::kPad, 2, 16},   {OptKind::kMerge, 4, 5}};
  const std::string text =
      "TILE(0, 32) UPCAST(1, 4) VECTOR(2, 16) UNROLL(3, 2) GROUP(3, 8) THREAD(0, 0) STAGE(1, 0) "
      "PAD(2, 16) MERGE(4, 5)";
  EXPECT_EQ(print(all), text);
  EXPECT_EQ(parse_opts(text), all);
  EXPECT_EQ(print(parse_opts("  TILE(0,32)   PAD( 1, -2)  ")), "TILE(0, 32) PAD(1, -2)");
  EXPECT_EQ(print(OptList{}), "");
  EXPECT_TRUE(parse_opts("").empty());
  EXPECT_TRUE(parse_opts("   ").empty());
}

TEST(OptText, ErrorsSayWhereAndWhat) {
  const std::string kinds =
      "one of TILE, UPCAST, VECTOR, UNROLL, GROUP, THREAD, STAGE, PAD, MERGE, LOCAL, SERIAL, "
      "SHARE, TENSOR, BULK, SHARD, BLOCK";
  EXPECT_EQ(
      parse_error("VECTOR"),
      "[parse_opts] expected an optimisation such as VECTOR(0, 16) at position 0 of \"VECTOR\"");
  EXPECT_EQ(parse_error("LOOP(0, 1)"),
            "[parse_opts] expected " + kinds + " at position 0 of \"LOOP(0, 1)\"");
  EXPECT_EQ(parse_error("PAD(0, 1) vector(0, 2)"),
            "[parse_opts] expected " + kinds + " at position 10 of \"PAD(0, 1) vector(0, 2)\"");
  EXPECT_EQ(parse_error("PAD(x, 1)"),
            "[parse_opts] expected a number at position 4 of \"PAD(x, 1)\"");
  EXPECT_EQ(parse_error("PAD(0 1)"), "[parse_opts] expected ',' at position 5 of \"PAD(0 1)\"");
  EXPECT_EQ(parse_error("PAD(0, 1"), "[parse_opts] expected ')' at position 8 of \"PAD(0, 1\"");
  EXPECT_EQ(parse_error("PAD(0, 99999999999999999999)"),
            "[parse_opts] expected a number at position 7 of \"PAD(0, 99999999999999999999)\"");
}

// ---- kernels to try on

struct Kernels {
  Arena arena;
  UOp zero = constant(arena, dtypes::float32, 0.0);

  UOp memory(int64_t id, int64_t size) { return define_global(arena, dtypes::float32, size, id); }
  // data0[i] = data1[i] * 2, of 40
  UOp twice() {
    const UOp i = range(arena, 40, 0);
    const UOp x = load(index(memory(1, 40), i));
    return sink(end(index(memory(0, 40), i).assign(x + x), i));
  }
  // data0[i] = the sum of data1[i, k], of 8 x 40
  UOp row_sums() {
    const UOp i = range(arena, 8, 0), k = range(arena, 40, 1, AxisType::kReduce);
    const UOp x = load(index(memory(1, 320), i * 40 + k));
    const std::vector<UOp> over{k};
    return sink(end(index(memory(0, 8), i).assign(reduce(Op::ADD, x, over)), i));
  }
  // data0[0] = data1[0], 40 times
  UOp same_40_times() {
    const UOp k = range(arena, 40, 0, AxisType::kReduce), at = index_const(arena, 0);
    const std::vector<UOp> over{k};
    return sink(
        index(memory(0, 1), at).assign(reduce(Op::ADD, load(index(memory(1, 1), at)), over)));
  }
  // data0[i, j] = the sum of data1[i, k] data2[k, j], of 16 x 16 x 16
  UOp product() {
    const UOp i = range(arena, 16, 0), j = range(arena, 16, 1),
              k = range(arena, 16, 2, AxisType::kReduce);
    const UOp a = load(index(memory(1, 256), i * 16 + k)),
              b = load(index(memory(2, 256), k * 16 + j));
    const std::vector<UOp> over{k}, loops{i, j};
    return sink(end(index(memory(0, 256), i * 16 + j).assign(reduce(Op::ADD, a * b, over)), loops));
  }
  // data0[i + 1] = data0[i]: each iteration reads what the one before wrote
  UOp shifted() {
    const UOp i = range(arena, 39, 0), m = memory(0, 40);
    return sink(end(index(m, i + 1).assign(load(index(m, i)) + load(index(m, i))), i));
  }
  // Two loops; the first kernel's RANGE is in one of them only.
  UOp two_loops() {
    const UOp i = range(arena, 40, 0), j = range(arena, 20, 1);
    return sink(end(index(memory(0, 40), i).assign(zero), i),
                end(index(memory(1, 20), j).assign(zero), j));
  }
};

std::string why(UOp kernel, std::string_view opt) {
  return why_not(mark_parallel_loops(kernel), parse_opts(opt).at(0));
}

TEST(OptApplies, ToLoopsThatAreFree) {
  Kernels k;
  for (const char* opt : {"TILE(0, 8)", "UPCAST(0, 4)", "VECTOR(0, 16)", "THREAD(0, 8)",
                          "THREAD(0, 0)", "PAD(0, 16)", "UPCAST(0, 7)"}) {
    EXPECT_EQ(why(k.twice(), opt), "") << opt;
  }
  for (const char* opt :
       {"TILE(1, 8)", "VECTOR(1, 16)", "UNROLL(1, 4)", "GROUP(1, 3)", "PAD(1, 16)"}) {
    EXPECT_EQ(why(k.row_sums(), opt), "") << opt;
  }
  for (const char* opt : {"STAGE(1, 0)", "STAGE(2, 1)"})
    EXPECT_EQ(why(k.product(), opt), "") << opt;
}

TEST(OptApplies, OrSaysWhyNot) {
  Kernels k;
  const auto expect = [](UOp kernel, std::string_view opt, std::string_view reason) {
    EXPECT_EQ(why(kernel, opt), reason) << opt;
  };
  expect(k.twice(), "TILE(1, 2)", "there is no loop 1");
  expect(k.twice(), "STAGE(1, 7)", "there is no loop 7");
  expect(k.twice(), "TILE(0, 0)", "the amount is not positive");
  expect(k.twice(), "VECTOR(0, 41)", "the loop is shorter than that");
  expect(k.twice(), "UNROLL(0, 2)", "it is no reduction");
  expect(k.twice(), "GROUP(0, 2)", "it is no reduction");
  expect(k.twice(), "THREAD(0, -1)", "the amount is negative");
  expect(k.twice(), "THREAD(0, 40)", "one thread would do all of it");
  expect(k.twice(), "VECTOR(0, 40)", "lanes are a power of two");
  expect(k.row_sums(), "UPCAST(1, 2)", "it is a reduction");
  expect(k.row_sums(), "THREAD(1, 2)", "it is a reduction");
  expect(k.shifted(), "TILE(0, 2)", "its iterations depend on their order");
  expect(k.two_loops(), "THREAD(0, 4)", "not all of the kernel is in this loop");
  expect(k.shifted(), "STAGE(0, 0)", "the kernel writes this argument");
  expect(apply_opts(k.product(), parse_opts("TILE(2, 4) VECTOR(1, 4)")), "STAGE(2, 2)",
         "no read of it is in loops of constant size inside of this one alone: not in lanes, "
         "copies or threads outside of it, which would share the memory");  // lanes would share it
  expect(k.twice(), "STAGE(1, 0)",
         "no read of it is in loops of constant size inside of this one alone: not in lanes, "
         "copies or threads outside of it, which would share the memory");
}

TEST(OptApplies, AfterOthers) {
  Kernels k;
  const auto expect = [](UOp kernel, std::string_view done, std::string_view opt,
                         std::string_view reason) {
    EXPECT_EQ(why(apply_opts(kernel, parse_opts(done)), opt), reason) << done << " then " << opt;
  };
  expect(k.twice(), "VECTOR(0, 8)", "TILE(1, 2)", "the range is of axis type lane");
  expect(k.product(), "VECTOR(1, 8)", "VECTOR(0, 8)", "what it computes has lanes already");
  expect(k.same_40_times(), "VECTOR(0, 8)", "VECTOR(0, 1)", "what it computes has lanes already");
  expect(k.twice(), "THREAD(0, 8)", "THREAD(0, 2)", "there is a loop over threads already");
  expect(k.product(), "TILE(0, 8) STAGE(1, 0)", "UPCAST(0, 2)", "local memory is filled in it");
  expect(k.product(), "LOCAL(0, 4)", "STAGE(1, 2)",  // threads of a group would share it
         "no read of it is in loops of constant size inside of this one alone: not in lanes, "
         "copies or threads outside of it, which would share the memory");
  const UOp big = [&] {
    const UOp i = range(k.arena, 1000, 0);
    return sink(end(index(k.memory(0, 1000), i).assign(k.zero), i));
  }();
  EXPECT_EQ(why(big, "VECTOR(0, 257)"), "the amount is larger than 256");
  EXPECT_EQ(why(big, "TILE(0, 257)"), "");
}

TEST(OptApplies, OrThrows) {
  Kernels k;
  try {
    apply_opts(k.twice(), parse_opts("TILE(0, 8) VECTOR(0, 16)"));
    FAIL() << "nothing thrown";
  } catch (const CompileError& e) {
    EXPECT_STREQ(e.what(),
                 "[apply_opts] VECTOR(0, 16) does not apply: the loop is shorter than that");
  }
}

std::vector<std::pair<AxisType, int64_t>> loops_of(UOp kernel) {
  std::vector<std::pair<AxisType, int64_t>> out;
  for (UOp n : toposort(kernel)) {
    if (n.is(Op::RANGE))
      out.emplace_back(n.axis(), n.src(0).is_const() ? n.src(0).const_int() : -1);
  }
  std::ranges::sort(out);
  return out;
}

// Ids: the outer part keeps its own, the inner part has the next that is free.
TEST(OptDone, LoopsAreCutAndRetyped) {
  Kernels k;
  const auto loops = [&](UOp kernel, std::string_view opts) {
    const UOp done = apply_opts(kernel, parse_opts(opts));
    verify(done, Stage::kKernel);
    return loops_of(done);
  };
  using Loops = std::vector<std::pair<AxisType, int64_t>>;
  const auto sorted = [](Loops l) {
    std::ranges::sort(l);
    return l;
  };
  EXPECT_EQ(loops(k.twice(), "TILE(0, 8)"),
            sorted(Loops{{AxisType::kGlobal, 5}, {AxisType::kGlobal, 8}}));
  EXPECT_EQ(loops(k.twice(), "VECTOR(0, 16)"),
            sorted(Loops{{AxisType::kGlobal, 2}, {AxisType::kLane, 16}, {AxisType::kGlobal, 8}}));
  EXPECT_EQ(loops(k.twice(), "PAD(0, 16)"), (Loops{{AxisType::kGlobal, 48}}));
  EXPECT_EQ(loops(k.twice(), "THREAD(0, 0)"), (Loops{{AxisType::kThread, 40}}));
  EXPECT_EQ(loops(k.row_sums(), "GROUP(1, 4) UNROLL(1, 2)"),
            sorted(Loops{{AxisType::kGlobal, 8},
                         {AxisType::kReduce, 5},
                         {AxisType::kGroupReduce, 4},
                         {AxisType::kUnroll, 2}}));
}

}  // namespace
}  // namespace weft
