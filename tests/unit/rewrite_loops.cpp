// Rules that never come to rest are stopped soon and reported as the loop that they are.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/config.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/loop_error.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "rewrite/statistics.h"

namespace weft {
namespace {
using namespace names;

template <size_t n>
RewriteLoopError caught(UOp root, const Rule (&rules)[n], Order order) {
  const RuleTable tables[] = {{"loops", kAnyDType, rules}};
  const RuleSet set("loops", tables);
  const size_t before = root.arena().bytes() + root.arena().side_table_bytes();
  std::optional<RewriteLoopError> error;
  try {
    graph_rewrite(root, set, {.order = order});
  } catch (const RewriteLoopError& e) {
    error = e;
  }
  EXPECT_TRUE(error) << "no loop was reported";
  EXPECT_LT(root.arena().bytes() + root.arena().side_table_bytes() - before, 200u << 20);
  return error ? *error : RewriteLoopError(LoopReport{});
}

struct Loops : testing::TestWithParam<Order> {
  Arena a;
  UOp i = range(a, 8, 0), j = range(a, 16, 1);
};
INSTANTIATE_TEST_SUITE_P(BothOrders, Loops, testing::Values(Order::kBottomUp, Order::kTopDown),
                         [](const auto& test) {
                           return test.param == Order::kBottomUp ? "BottomUp" : "TopDown";
                         });

TEST_P(Loops, PingPong) {
  static constexpr Rule rules[] = {rule("ping", x + y, x * y), rule("pong", x * y, x + y)};
  const RewriteLoopError e = caught(sink(i + j), rules, GetParam());
  EXPECT_EQ(e.kind(), LoopKind::kCycle);
  ASSERT_EQ(e.steps().size(), 2u);
  EXPECT_EQ(e.steps()[0].node, "r0 + r1");
  EXPECT_EQ(e.steps()[0].rule, "ping");
  EXPECT_EQ(e.steps()[1].node, "r0*r1");
  EXPECT_EQ(e.steps()[1].rule, "pong");
  EXPECT_EQ(e.ends_in(), "r0 + r1");
  EXPECT_NE(e.steps()[0].file.find("rewrite_loops.cpp"), std::string::npos);
  EXPECT_GT(e.steps()[0].line, 0u);
  EXPECT_NE(std::string(e.what()).find("rewrite_loops.cpp:"), std::string::npos);
}

TEST_P(Loops, ACycleOfThreeThroughChangedSources) {
  static constexpr Rule rules[] = {rule("one", x * 1, x), rule("a", x + y, max(x, y)),
                                   rule("b", max(x, y), min(x, y)), rule("c", min(x, y), x + y)};
  const RewriteLoopError e = caught(sink((i * 1) + j), rules, GetParam());
  EXPECT_EQ(e.kind(), LoopKind::kCycle);
  EXPECT_EQ(e.steps().size(), 3u);
}

TEST_P(Loops, GrowthOnTheWayUp) {  // what the rule makes encloses what it replaced
  static constexpr Rule rules[] = {rule("wrap", x + y, (x + y) * 2)};
  const RewriteLoopError e = caught(sink(i + j), rules, GetParam());
  EXPECT_EQ(e.kind(), LoopKind::kGrowth);
  ASSERT_GE(e.steps().size(), 2u);
  EXPECT_EQ(e.steps()[0].rule, "wrap");
  EXPECT_EQ(e.steps()[0].node, "r0 + r1");
  EXPECT_EQ(e.steps()[1].node, "(r0 + r1)*2");
}

TEST_P(Loops, GrowthByANewNodeEachTime) {
  static constexpr Rule rules[] = {rule("count", x + c0, x + fold(c0 + 1))};
  const RewriteLoopError e = caught(sink(i + 1), rules, GetParam());
  EXPECT_EQ(e.kind(), LoopKind::kGrowth);
  ASSERT_GE(e.steps().size(), 3u);
  EXPECT_EQ(e.steps()[0].rule, "count");
  EXPECT_NE(e.steps()[0].node, e.steps()[1].node);
}

TEST_P(Loops, GrowthOnTheWayDown) {  // the new node lies below what the rule makes
  static constexpr Rule rules[] = {rule("down", x + c0, (x + fold(c0 + 1)) * 2)};
  const RewriteLoopError e = caught(sink(i + 100), rules, GetParam());
  EXPECT_EQ(e.kind(), LoopKind::kGrowth);
  ASSERT_GE(e.steps().size(), 3u);
  EXPECT_EQ(e.steps()[0].rule, "down");
  EXPECT_EQ(e.steps()[0].node, "r0 + 100");
  EXPECT_EQ(e.steps()[1].node, "r0 + 101");
}

TEST_P(Loops, GrowthThatDoublesEachTime) {
  static constexpr Rule rules[] = {
      rule("double", x + c0, (x + fold(c0 * 2)) * (x + fold(c0 * 2 + 1)))};
  EXPECT_EQ(caught(sink(i + 1), rules, GetParam()).kind(), LoopKind::kGrowth);
}

TEST_P(Loops, GrowthByMoreAndMoreSources) {
  static constexpr Rule one_more[] = {rule("one-more", op(Op::SINK, rest), [](Match& m) {
    std::vector<UOp> srcs(m[rest].begin(), m[rest].end());
    srcs.push_back(srcs[0]);
    return m.arena().make(Op::SINK, dtypes::void_, srcs);
  })};
  EXPECT_EQ(caught(sink(i, j), one_more, GetParam()).kind(), LoopKind::kGrowth);
  static constexpr Rule twice[] = {rule("twice", op(Op::SINK, rest), [](Match& m) {
    std::vector<UOp> srcs(m[rest].begin(), m[rest].end());
    srcs.insert(srcs.end(), m[rest].begin(), m[rest].end());
    return m.arena().make(Op::SINK, dtypes::void_, srcs);
  })};
  EXPECT_EQ(caught(sink(i, j), twice, GetParam()).kind(), LoopKind::kGrowth);
}

TEST_P(Loops, AreCountedByTheStatistics) {
  static constexpr Rule rules[] = {rule("ping", x + y, x * y), rule("pong", x * y, x + y)};
  reset_rule_statistics();
  config().stats = 1;
  caught(sink(i + j), rules, GetParam());
  config().stats = 0;
  EXPECT_EQ(rule_statistics().size(), 2u);
  reset_rule_statistics();
}

TEST_P(Loops, BeginAtTheNodeOfTheGraph) {  // though the graph has later terms of the sequence, too
  static constexpr Rule rules[] = {rule("count", x + c0, x + fold(c0 + 1))};
  const RewriteLoopError e = caught(sink(i + 3, j * 10'007), rules, GetParam());
  EXPECT_EQ(e.steps()[0].node, "r0 + 3");
  EXPECT_EQ(e.steps()[0].change, "3 becomes 4");
  EXPECT_EQ(e.steps()[1].node, "r0 + 4");
}

TEST_P(Loops, SayWhatAStepAdds) {  // to terms of which the outer levels are shown
  static constexpr Rule rules[] = {rule("add-nothing", op(Op::STORE, x, y), [](Match& m) {
    return m[x].assign(m[y] + constant(m.arena(), dtypes::float32, 0.0));
  })};
  const UOp data = define_global(a, dtypes::float32, 8, 0);
  UOp value = constant(a, dtypes::float32, 2.0);
  for (int64_t k = 1; k < 60; k++) value = value * load(index(data, index_const(a, k % 8)));
  const RewriteLoopError e = caught(sink(end(index(data, i).assign(value), i)), rules, GetParam());
  EXPECT_EQ(e.kind(), LoopKind::kGrowth);
  ASSERT_EQ(e.steps().size(), 6u);
  const LoopStep &first = e.steps()[0], &second = e.steps()[1];
  EXPECT_NE(first.node, second.node);
  EXPECT_EQ(first.change.substr(first.change.size() - 17), "becomes ... + 0.0") << first.change;
  EXPECT_EQ(second.change.substr(second.change.size() - 17), "becomes ... + 0.0");
  EXPECT_NE(std::string(e.what()).find("becomes ... + 0.0\n"), std::string::npos);
}

TEST_P(Loops, ShowWhatEnclosesTheNext) {
  static constexpr Rule rules[] = {rule("split", x + c0, (x + 1) + c0)};
  const RewriteLoopError e = caught(sink(i + 3), rules, GetParam());
  EXPECT_EQ(e.kind(), LoopKind::kGrowth);
  EXPECT_EQ(e.steps()[0].node, "r0 + 3");
  EXPECT_EQ(e.steps()[0].change, "r0 becomes ... + 1");
  if (GetParam() == Order::kTopDown) return;
  EXPECT_EQ(e.steps()[1].node, "r0 + 1");
  EXPECT_EQ(e.steps()[1].around, "... + 3");
}

TEST_P(Loops, ALongCycleIsOne) {
  static constexpr Rule rules[] = {
      rule("enter", x * c0, x + c0),
      rule("round", x + c0, x + fold((c0 + 1) % 50'000)),
  };
  const RewriteLoopError e = caught(sink(i * 7), rules, GetParam());
  EXPECT_EQ(e.kind(), LoopKind::kCycle);
  EXPECT_EQ(e.report().length, 50'000u);
  EXPECT_EQ(e.steps()[0].node, "r0 + 7");
  EXPECT_EQ(e.steps()[0].change, "7 becomes 8");
  EXPECT_EQ(e.ends_in(), "r0 + 7");
  ASSERT_EQ(e.report().lead.size(), 1u);
  EXPECT_EQ(e.report().lead[0].node, "r0*7");
  const std::string text = e.what();
  EXPECT_NE(text.find("in a cycle of 50000 steps"), std::string::npos) << text;
  EXPECT_NE(text.find("... and 49994 more steps"), std::string::npos) << text;
  EXPECT_LT(text.size(), 2000u);
}

TEST_P(Loops, ALongCycleThatPassesThroughLargeTerms) {  // of the same size
  static constexpr Rule rules[] = {
      rule("round", max(x, y) + c0, max(y, x) + fold((c0 + 3) % 30'000))};
  UOp large = i;
  for (int64_t k = 0; k < 200; k++) large = large * j;
  const RewriteLoopError e = caught(sink(max(large, j) + 1), rules, GetParam());
  EXPECT_EQ(e.kind(), LoopKind::kCycle);
}

TEST_P(Loops, AreFoundInALargeGraphToo) {
  static constexpr Rule rules[] = {rule("down", -(x + c0), -(x + fold(c0 + 1)) * 2)};
  UOp n = i;
  for (int64_t d = 0; d < 100'000; d++)
    n = a.make(Op::MUL, dtypes::index, {n, index_const(a, 7 + d % 5)});
  const RewriteLoopError e = caught(sink(n, -(i + 100)), rules, GetParam());
  EXPECT_EQ(e.kind(), LoopKind::kGrowth);
}

TEST_P(Loops, HugeGraphsDoNotHideGrowth) {  // a chain of a million nodes below what grows
  static constexpr Rule rules[] = {rule("grow", -x, -(x + x))};
  UOp n = i;
  for (int64_t d = 0; d < 1'000'000; d++) n = a.make(Op::MUL, dtypes::index, {n, j});
  const UOp root = a.make(Op::SINK, dtypes::void_, {a.make(Op::NEG, dtypes::index, {n})});
  const size_t nodes = a.size();
  EXPECT_EQ(caught(root, rules, GetParam()).kind(), LoopKind::kGrowth);
  EXPECT_LT(a.size() - nodes, 50'000u);
}

TEST_P(Loops, APushThroughALongChainIsNone) {
  static constexpr Rule rules[] = {rule("push", -(x * y), -x * y)};
  UOp n = i;
  for (int64_t d = 0; d < 200'000; d++) n = a.make(Op::MUL, dtypes::index, {n, j});
  const RuleTable tables[] = {{"push", kAnyDType, rules}};
  const UOp root = a.make(Op::NEG, dtypes::index, {n});
  EXPECT_NO_THROW(graph_rewrite(root, RuleSet("push", tables), {.order = GetParam()}));
}

TEST_P(Loops, TheArenaIsUsableAfterwards) {
  static constexpr Rule rules[] = {rule("ping", x + y, x * y), rule("pong", x * y, x + y)};
  caught(sink(i + j), rules, GetParam());
  static constexpr Rule fine[] = {rule("swap", x + y, max(x, y))};
  const RuleTable tables[] = {{"fine", kAnyDType, fine}};
  EXPECT_EQ(graph_rewrite(i + j, RuleSet("fine", tables)), max(i, j));
}

// What only looks like a loop: a long way that ends.
TEST(NoLoop, ManyThousandStepsOnOneNode) {
  static constexpr Rule rules[] = {rule("down-to-zero", x + c0, x + fold(c0 - 1)).when(c0 > 0)};
  const RuleTable tables[] = {{"t", kAnyDType, rules}};
  Arena a;
  const UOp i = range(a, 8, 0);
  EXPECT_EQ(graph_rewrite(i + 60'000, RuleSet("t", tables)), i + 0);
}

TEST(NoLoop, AThousandStepsOnOneNode) {
  static constexpr Rule rules[] = {rule("down-to-zero", x + c0, x + fold(c0 - 1)).when(c0 > 0)};
  const RuleTable tables[] = {{"t", kAnyDType, rules}};
  Arena a;
  const UOp i = range(a, 8, 0);
  EXPECT_EQ(graph_rewrite(i + 5000, RuleSet("t", tables)), i + 0);
}

}  // namespace
}  // namespace weft
