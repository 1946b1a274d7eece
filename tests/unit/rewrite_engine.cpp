// The pattern language, the two orders, gates, contexts, traces and pass lists.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/config.h"
#include "base/error.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/walk.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "rewrite/statistics.h"
#include "rewrite/trace.h"
#include "symbolic/simplify.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/random_expression.h"

namespace weft {
namespace {
using namespace names;

template <size_t n>
UOp run(UOp root, const Rule (&rules)[n], RewriteOptions options = {},
        DTypeSet domain = kAnyDType) {
  const RuleTable tables[] = {{"test", domain, rules}};
  return graph_rewrite(root, RuleSet("test", tables), options);
}

struct Fixture : testing::Test {
  Arena a;
  UOp i = range(a, 8, 0), j = range(a, 16, 1), k = range(a, 4, 2);
  UOp num(int64_t v) { return index_const(a, v); }
};
using Patterns = Fixture;
using Engine = Fixture;

TEST_F(Patterns, CommutativeSourcesMatchInBothOrders) {
  static constexpr Rule rules[] = {rule("add-add", (x + c0) + c1, x + fold(c0 + c1))};
  EXPECT_EQ(run((i + 2) + 3, rules), i + 5);
  EXPECT_EQ(run(num(3) + (num(2) + i), rules), i + 5);
}

TEST_F(Patterns, AFailingConditionTriesTheOtherOrder) {
  static constexpr Rule rules[] = {rule("pick", x * c0 + y * c1, y).when(c0 > c1)};
  EXPECT_EQ(run(i * 2 + j * 5, rules), i);  // only x = j, c0 = 5 satisfies c0 > c1
  static constexpr Rule by_test[] = {rule("pick", x * c0 + y * c1, y).when([](const Match& m) {
    return m[c0].const_int() > m[c1].const_int();
  })};
  EXPECT_EQ(run(i * 2 + j * 5, by_test), i);
}

TEST_F(Patterns, ABodyThatDeclinesTriesTheOtherOrder) {
  static constexpr Rule rules[] = {
      rule("pick", x + y, [](Match& m) { return m[x].range_id() == 1 ? m[y] : UOp(); })};
  EXPECT_EQ(run(i + j, rules), i);
}

TEST_F(Patterns, ARepeatedNameMatchesTheSameNode) {
  static constexpr Rule rules[] = {rule("self", x - x, 0)};
  EXPECT_EQ(run((i + 1) - (i + 1), rules), num(0));
  EXPECT_EQ(run(i - j, rules), i - j);
  static constexpr Rule consts[] = {rule("same", (x + c0) * c0, x)};
  EXPECT_EQ(run((i + 3) * 3, consts), i);
  EXPECT_EQ(run((i + 3) * 4, consts), (i + 3) * 4);
}

TEST_F(Patterns, Alternatives) {
  static constexpr Rule rules[] = {rule("either", op(Op::NEG, either(x * c0, x + c0)), x * c0)};
  EXPECT_EQ(run(-(i * 3), rules), i * 3);
  EXPECT_EQ(run(-(i + 3), rules), i * 3);
  EXPECT_EQ(run(-(i % num(3)), rules), -(i % num(3)));
  // what only one alternative binds is not bound by the whole
  static_assert((either(x, y).binds & ~uint32_t(0)) == 0);
  // the second alternative is tried when the condition refuses the first
  static constexpr Rule again[] = {
      rule("again", op(Op::NEG, either(x + y, y + x)), x).when([](const Match& m) {
        return m[x].is_const();
      })};
  EXPECT_EQ(run(-(i + num(3)), again), num(3));
}

TEST_F(Patterns, AnyNumberOfSources) {
  static constexpr Rule rules[] = {rule("flatten", op(Op::SINK, rest), [](Match& m) -> UOp {
    std::vector<UOp> flat;
    for (UOp n : m[rest]) {
      if (n.is(Op::SINK)) {
        flat.insert(flat.end(), n.srcs().begin(), n.srcs().end());
      } else {
        flat.push_back(n);
      }
    }
    return flat.size() == m[rest].size() ? UOp() : sink(m.arena(), flat);
  })};
  const UOp nested = a.make(Op::SINK, dtypes::void_, {sink(i, j), k});
  EXPECT_EQ(run(nested, rules), sink(a, std::vector{i, j, k}));
  static constexpr Rule of_add[] = {rule("of-add", op(Op::ADD, x, rest), x)};
  EXPECT_EQ(run(i + j, of_add), i);  // also of an op that commutes
  static constexpr Rule first[] = {rule("first", op(Op::SINK, x, rest), x)};
  EXPECT_EQ(run(sink(i, j), first), i);
  EXPECT_EQ(run(sink(a, {}), first), sink(a, {}));
}

TEST_F(Patterns, OpSetsDTypeSetsAndNamedNodes) {
  static constexpr Rule rules[] = {rule("either-op", as(w, op({Op::ADD, Op::MUL}, x, c0)), w - x)};
  EXPECT_EQ(
      run(i + 3, rules, {.order = Order::kTopDown, .descend = [](UOp, void*) { return false; }})
          .op(),
      Op::SUB);
  static constexpr Rule floats[] = {rule("floats", x.of(kFloats) + y, x)};
  const UOp f = cast(i, dtypes::float32);
  EXPECT_EQ(run(f + f, floats), f);
  EXPECT_EQ(run(i + j, floats), i + j);
  static constexpr Rule on_op[] = {rule("negated", -(x + y).of(kFloats), x)};
  EXPECT_EQ(run(-(f + f), on_op), f);
  EXPECT_EQ(run(-(i + j), on_op), -(i + j));
}

TEST_F(Patterns, TheDomainIsThatOfTheOperands) {
  static constexpr Rule rules[] = {rule("lt", x < y, 1)};
  EXPECT_EQ(run(i < j, rules, {}, kIndexes), bool_const(a, true));
  EXPECT_EQ(run(i < j, rules, {}, kBools), i < j);
}

TEST_F(Patterns, NumbersMatchInTheNodesDtype) {
  static constexpr Rule rules[] = {rule("minus-one", x * -1, -x),
                                   rule("minus-zero", x + literal(-0.0), x)};
  const UOp u = cast(i, dtypes::uint8), f = cast(i, dtypes::float32);
  EXPECT_EQ(run(u * constant(a, dtypes::uint8, 255), rules), -u);
  EXPECT_EQ(run(f * constant(a, dtypes::float32, -1.0), rules), -f);
  EXPECT_EQ(run(f + constant(a, dtypes::float32, -0.0), rules), f);
  const UOp plus = f + constant(a, dtypes::float32, 0.0);
  EXPECT_EQ(run(plus, rules), plus);
}

TEST_F(Patterns, FoldsThatOverflowDoNotApply) {
  static constexpr Rule rules[] = {rule("fold", c0 * c1, fold(c0 * c1))};
  const UOp big = num(INT64_MAX) * num(2);
  EXPECT_EQ(run(big, rules), big);  // index is exact
  const UOp wraps = constant(a, dtypes::int32, INT32_MAX) * constant(a, dtypes::int32, 2);
  EXPECT_EQ(run(wraps, rules), constant(a, dtypes::int32, -2));
}

TEST_F(Patterns, RulesKnowTheirNameAndPlace) {
  static constexpr Rule rules[] = {rule("here", x + y, x)};
  static_assert(rules[0].name == "here");
  EXPECT_NE(std::string(rules[0].file).find("rewrite_engine.cpp"), std::string::npos);
  EXPECT_GT(rules[0].line, 100u);
  static constexpr Rule twice[] = {rule("here", x * y, x)};
  const RuleTable tables[] = {{"a", kAnyDType, rules}, {"b", kAnyDType, twice}};
  EXPECT_THROW(RuleSet("twice", tables), InternalError);
}

TEST_F(Engine, BottomUpSeesSourcesAtRest) {
  static constexpr Rule rules[] = {rule("fold", c0 + c1, fold(c0 + c1)),
                                   rule("mul-zero", x * 0, 0)};
  EXPECT_EQ(run(i * (num(2) + num(-2)), rules), num(0));
}

TEST_F(Engine, TopDownSeesTheNodeFirst) {
  // -(-x) -> x has the outer pair under top-down, so one sign is left on the inside
  static constexpr Rule rules[] = {rule("cancel", -(-x), x)};
  Trace trace;
  EXPECT_EQ(run(-(-(-i)), rules, {.order = Order::kTopDown, .trace = &trace}), -i);
  ASSERT_EQ(trace.passes[0].steps.size(), 1u);
  EXPECT_EQ(trace.passes[0].steps[0].before, -(-(-i)));
  // what changes below brings the node back to the rules
  static constexpr Rule both[] = {rule("one", x * 1, x), rule("self", x - x, 0)};
  EXPECT_EQ(run((i * 1) - i, both, {.order = Order::kTopDown}), num(0));
}

TEST_F(Engine, TopDownPushesThroughADeepGraph) {
  static constexpr Rule rules[] = {rule("sink-neg", -(x + y), -x + y)};
  UOp n = i;
  for (int d = 0; d < 200'000; d++) n = a.make(Op::ADD, dtypes::index, {n, j});
  const UOp out = run(-n, rules, {.order = Order::kTopDown});
  EXPECT_EQ(summarize(out).by_op[size_t(Op::NEG)], 1u);
}

TEST_F(Engine, AGateStopsTheDescent) {
  static constexpr Rule rules[] = {rule("one", x * 1, x)};
  const UOp root = sink((i * 1) + j, i * 1);
  auto gate = [](UOp n, void*) { return !n.is(Op::ADD); };
  for (const Order order : {Order::kBottomUp, Order::kTopDown}) {
    EXPECT_EQ(run(root, rules, {.order = order, .descend = gate}), sink((i * 1) + j, i));
  }
}

TEST_F(Engine, BodiesSeeTheContext) {
  struct Counter {
    int seen = 0;
  } counter;
  static constexpr Rule rules[] = {rule("count", x + y, [](Match& m) {
    m.context<Counter>().seen++;
    return UOp();
  })};
  EXPECT_EQ(run((i + j) * (i + j), rules, {.context = &counter}), (i + j) * (i + j));
  EXPECT_GE(counter.seen, 1);
}

TEST_F(Engine, AMillionNodeChainIsRewrittenWithoutRecursion) {
  static constexpr Rule rules[] = {rule("one", x * 1, x)};
  UOp n = i;
  const UOp one = num(1);
  for (int d = 0; d < 1'000'000; d++) n = a.make(Op::MUL, dtypes::index, {n, one});
  EXPECT_EQ(run(n, rules), i);
}

TEST_F(Engine, PassesRunInOrderAndAreRecorded) {
  static constexpr Rule first[] = {rule("add-to-mul", x + y, x * y)};
  static constexpr Rule second[] = {rule("mul-to-max", x * y, max(x, y))};
  const RuleTable ta[] = {{"a", kAnyDType, first}}, tb[] = {{"b", kAnyDType, second}};
  const RuleSet ra("a", ta), rb("b", tb);
  const Pass passes[] = {{"one", &ra}, {"two", &rb, Order::kTopDown, nullptr, Stage::kTensor}};
  Trace trace;
  EXPECT_EQ(run_passes(i + j, std::span(passes).first(1), nullptr, &trace), i * j);
  const UOp x0 = variable(a, "p", 0, 3), x1 = variable(a, "q", 0, 3);
  EXPECT_EQ(run_passes(x0 + x1, passes, nullptr, &trace, Verify::kEveryPass), max(x0, x1));
  ASSERT_EQ(trace.passes.size(), 3u);
  EXPECT_EQ(trace.passes[2].name, "two");
  EXPECT_NE(trace.text().find("mul-to-max"), std::string::npos);
  EXPECT_NE(trace.json().find("\"rule\":\"mul-to-max\""), std::string::npos);
  // a range is no tensor: the pass that leaves one behind is named
  try {
    run_passes(i + j, passes, nullptr, nullptr, Verify::kEveryPass);
    ADD_FAILURE();
  } catch (const SpecError& e) {
    EXPECT_NE(std::string(e.what()).find("two"), std::string::npos) << e.what();
  }
}

TEST_F(Engine, StatisticsCountWhatWasTriedAndFired) {
  static constexpr Rule rules[] = {rule("stat-one", x * 1, x),
                                   rule("stat-two", x * c0, x).when(c0 > 5)};
  const int before = config().stats;
  reset_rule_statistics();
  run(sink(i * 1, j * 3), rules);
  EXPECT_TRUE(rule_statistics().empty());  // off: nothing is counted
  config().stats = 1;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([] {
      Arena arena;
      const UOp r = range(arena, 8, 0);
      run(sink(r * 1, r * 3), rules);
    });
  }
  for (auto& t : threads) t.join();
  config().stats = before;
  const std::vector<RuleStatistic> stats = rule_statistics();
  ASSERT_EQ(stats.size(), 2u);
  for (const RuleStatistic& s : stats) {
    const bool one = s.name == "stat-one";
    EXPECT_EQ(s.count.fired, one ? 4u : 0u);
    EXPECT_EQ(s.count.tried, 4u);
    EXPECT_NE(s.file.find("rewrite_engine.cpp"), std::string::npos);
  }
  EXPECT_NE(text_of(stats).find("stat-one"), std::string::npos);
  reset_rule_statistics();
}

TEST(Matching, OfASettledGraphAllocatesNoNode) {
  for (uint64_t seed = 0; seed < 50; seed++) {
    Arena a;
    fuzz::Choices choices(seed);
    const UOp root = graph_rewrite(fuzz::RandomExpression(a, choices).index(5), ungated_rules());
    const size_t size = a.size();
    for (UOp n : toposort(root)) EXPECT_FALSE(ungated_rules().rewrite(n, nullptr).result);
    EXPECT_LE(a.size() - size, 64u);  // bodies may build what turns out to be the node itself
  }
}

}  // namespace
}  // namespace weft
