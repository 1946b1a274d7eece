// Every illegal graph is refused with its message, by find_violation() and by verify().
#include "tests/error/illegal.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/spec.h"

namespace weft::test {

UOp parse_after_prelude(Arena& arena, std::string_view text) {
  return parse(arena, std::string(kPrelude) + std::string(text));
}

std::vector<Illegal> all_illegal() {
  std::vector<Illegal> all;
  for (const auto table : {illegal_values(), illegal_movements(), illegal_stores(),
                           illegal_memory(), illegal_programs(), illegal_loops()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

namespace {

class IllegalGraph : public testing::TestWithParam<Illegal> {};

TEST_P(IllegalGraph, IsRefusedWithItsMessage) {
  Arena arena;
  const UOp root = parse_after_prelude(arena, GetParam().text);
  const std::optional<Violation> v = find_violation(root, GetParam().stage);
  ASSERT_TRUE(v.has_value()) << print(root);
  EXPECT_EQ(v->message, GetParam().message);
  EXPECT_TRUE(v->message.starts_with(name_of(v->node.op())));
}

TEST_P(IllegalGraph, IsShownByVerify) {
  Arena arena;
  const UOp root = parse_after_prelude(arena, GetParam().text);
  try {
    verify(root, GetParam().stage, "some_pass");
    FAIL() << print(root);
  } catch (const SpecError& e) {
    const std::string said = e.what();
    const UOp node = find_violation(root, GetParam().stage)->node;
    EXPECT_EQ(said, std::string(GetParam().message) + "\n" + neighbourhood(node) + "  in the " +
                        std::string(name_of(GetParam().stage)) + " stage, after pass some_pass");
  }
}

std::string name_of_case(const testing::TestParamInfo<Illegal>& info) {
  return std::string(info.param.name);
}

INSTANTIATE_TEST_SUITE_P(Spec, IllegalGraph, testing::ValuesIn(all_illegal()), name_of_case);

TEST(IllegalGraphs, AreManyAndDistinct) {
  std::set<std::string_view> names;
  std::set<std::pair<Stage, std::string_view>> graphs;
  for (const Illegal& i : all_illegal()) {
    EXPECT_TRUE(names.insert(i.name).second) << i.name;
    EXPECT_TRUE(graphs.insert({i.stage, i.text}).second) << i.name;
  }
  EXPECT_GE(names.size(), 200u);
}

}  // namespace
}  // namespace weft::test
