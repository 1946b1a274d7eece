// How rules read as text.
#include "rewrite/rule_text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ir/dtype.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {
namespace {
using namespace names;

TEST(RuleText, ExpressionsAreReadByPrograms) {
  EXPECT_EQ(sexpr_of((x + c0) * -1), "(mul (add x c0) -1)");
  EXPECT_EQ(sexpr_of(x - literal(-0.0)), "(sub x -0.0)");
  EXPECT_EQ(sexpr_of(x * literal(1e300)), "(mul x 1e+300)");
  EXPECT_EQ(sexpr_of(op({Op::MUL, Op::ADD}, nonconst(x), y)), "({add mul} (nonconst x) y)");
  EXPECT_EQ(sexpr_of(as(w, x + y) - either(w, -w)), "(sub (as w (add x y)) (either w (neg w)))");
  EXPECT_EQ(sexpr_of(op(Op::SINK, x, rest)), "(sink x rest)");
  EXPECT_EQ(sexpr_of(fold(c0 + c1)), "(fold (add c0 c1))");
  EXPECT_EQ(sexpr_of(lower(x) < upper(y)), "(cmplt (lower x) (upper y))");
  EXPECT_EQ(sexpr_of((x.of(kIntegers) + y).of(kFloats)), "(add x:index|int|uint y):float");
}

TEST(RuleText, PeopleReadInfix) {
  constexpr Rule rules[] = {
      rule("a", (x + c0) + c1, x + fold(c0 + c1)),
      rule("b", x * c0 + x * c1, x * fold(c0 + c1)).when(c0 > 0 && c1 > 0 && c0 % c1 == 0),
      rule("c", !(x.of(kIndexes) < nonconst(y)), y < x + 1),
      rule("d", (x & y) | -(-x), max(x, where(x < y, x, y))).when(!(lower(x) < upper(y))),
      rule("e", fdiv(x, y), [](Match&) { return UOp(); }),
  };
  const std::vector<std::string> expected = {
      "(x + c0) + c1 -> x + fold(c0 + c1)",
      "x * c0 + x * c1 -> x * fold(c0 + c1)  when c0 > 0 and c1 > 0 and c0 % c1 == 0",
      "!(x < y) -> y < x + 1  (x: index; y not constant)",
      "(x & y) | -(-x) -> max(x, where(x < y, x, y))  when not (lower(x) < upper(y))",
      "x / y -> C++",
  };
  std::vector<std::string> forms;
  for (const Rule& r : rules) forms.push_back(infix_of(r));
  EXPECT_EQ(forms, expected);
}

TEST(RuleText, ClassesOfDtypes) {
  EXPECT_EQ(class_names(kIntegers), (std::vector<std::string>{"index", "int", "uint"}));
  EXPECT_EQ(class_names(kBools | set_of(Scalar::kInt8)),
            (std::vector<std::string>{"int8", "bool"}));
  EXPECT_EQ(class_names(kAnyDType).size(), 5u);
}

TEST(RuleText, JsonHasEveryField) {
  static constexpr Rule kRules[] = {
      rule("sum", x.of(kIndexes) + c0, x).when(c0 < 1),
      rule("body", op(Op::SINK, rest), [](Match&) { return UOp(); }),
  };
  const RuleTable tables[] = {{"table", kIndexes, kRules}};
  const nlohmann::json all = nlohmann::json::parse(rules_json(tables));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["table"], "table");
  EXPECT_EQ(all[0]["domain"], nlohmann::json({"index"}));
  EXPECT_EQ(all[0]["file"], "tests/unit/rule_text.cpp");
  EXPECT_GT(all[0]["line"], 0);
  EXPECT_EQ(all[0]["declarative"], true);
  EXPECT_EQ(all[0]["lhs"], "(add x:index c0)");
  EXPECT_EQ(all[0]["rhs"], "x");
  EXPECT_EQ(all[0]["when"], "(cmplt c0 1)");
  EXPECT_EQ(all[0]["dtypes"]["x"], nlohmann::json({"index"}));
  EXPECT_EQ(all[1]["declarative"], false);
  EXPECT_TRUE(all[1]["rhs"].is_null() && all[1]["when"].is_null());
}

}  // namespace
}  // namespace weft
