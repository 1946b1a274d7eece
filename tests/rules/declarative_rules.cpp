// The declarative rules, as the engine runs them: proofs are about the data of a rule, this is
// about matching it and building its replacement. Each rule is given random instances of its own
// pattern, in every dtype of its table; it must apply, and keep the value. Wrong rules must be
// caught.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "symbolic/simplify.h"
#include "tests/rules/check_steps.h"
#include "tests/rules/point.h"
#include "tests/rules/wrong_rules.h"

namespace weft::test {
namespace {

std::vector<DType> members(DTypeSet set) {
  std::vector<DType> out;
  for (int s = int(Scalar::kBool); s < kScalarCount; s++) {
    if (set & set_of(Scalar(s))) out.push_back({Scalar(s)});
  }
  return out;
}

// A random graph of the form of a pattern.
class Instance {
 public:
  Instance(Arena& arena, Random& random, const Pattern& pattern, DType domain)
      : arena_(arena), random_(random), p_(pattern), domain_(domain) {
    DTypeSet compared = kAnyDType;  // what comparisons below the root compare
    for (size_t i = 0; i < p_.size; i++) compared &= p_.cells[i].dtypes;
    const std::vector<DType> choices = members(compared != 0 ? compared : kAnyDType);
    compared_ = choices[size_t(between(random, 0, int64_t(choices.size()) - 1))];
  }

  UOp root() {
    const Cell& c = p_.root();
    return make(0, c.kind == CellKind::kOp && yields_bool(c.op) ? dtypes::bool_ : domain_);
  }

 private:
  UOp make(size_t at, DType type) {
    const Cell& c = p_.cells[at];
    if (c.dtypes != kAnyDType && std::has_single_bit(c.dtypes)) type = members(c.dtypes)[0];
    switch (c.kind) {
      case CellKind::kNode:
      case CellKind::kNonConst:
        return nodes_[c.slot] ? nodes_[c.slot] : nodes_[c.slot] = leaf(c, type);
      case CellKind::kConst:
        if (consts_[c.slot]) return consts_[c.slot];
        return consts_[c.slot] = constant_bits(arena_, type, random_bits(random_, type));
      case CellKind::kLiteral:
        return constant_bits(arena_, type, bits_of_int(type, int64_t(c.value)));
      case CellKind::kDouble:
        return constant_bits(arena_, type, bits_of_double(type, std::bit_cast<double>(c.value)));
      case CellKind::kEither:
        return make(between(random_, 0, 1) != 0 ? at + 1 : p_.skip(at + 1), type);
      default: return make_op(at, type);
    }
  }

  UOp make_op(size_t at, DType type) {
    const Cell& c = p_.cells[at];
    const Op op = c.kind == CellKind::kOp ? c.op : one_of(c.ops);
    const DType operand = !yields_bool(op) ? type : at == 0 ? domain_ : compared_;
    std::vector<UOp> srcs;
    size_t next = at + 1;
    for (size_t i = 0; i < c.arity; i++, next = p_.skip(next)) {
      srcs.push_back(make(next, op == Op::WHERE && i == 0 ? dtypes::bool_ : operand));
    }
    const UOp n = arena_.make(op, type, srcs);
    if (c.slot != kNoSlot) nodes_[c.slot] = n;
    return n;
  }

  Op one_of(OpSet ops) {
    std::vector<Op> all;
    for (size_t o = 0; o < kOpCount; o++) {
      if (ops.has(Op(o))) all.push_back(Op(o));
    }
    return all[size_t(between(random_, 0, int64_t(all.size()) - 1))];
  }

  // An integer in narrow bounds, or any value at all.
  UOp leaf(const Cell& c, DType type) {
    const bool bounded = type.is_int() && between(random_, 0, 2) != 0;
    if (bounded) {
      const int64_t low = between(random_, type.is_signed() ? -12 : 0, 12);
      return variable(arena_, std::string(1, char('a' + c.slot)), low,
                      low + between(random_, 0, 12), type);
    }
    if (c.kind == CellKind::kNode && between(random_, 0, 4) == 0) {
      return constant_bits(arena_, type, random_bits(random_, type));
    }
    return define_reg(arena_, type, c.slot);
  }

  Arena& arena_;
  Random& random_;
  const Pattern& p_;
  DType domain_, compared_;
  std::array<UOp, kMaxNodeNames> nodes_;
  std::array<UOp, kMaxConstNames> consts_;
};

struct Outcome {
  int fired = 0;
  std::string fault;
};

// Instances until the rule has applied `enough` times or a fault is found.
Outcome try_rule(const Rule& rule, const RuleTable& table, DType domain) {
  constexpr int most = 4000, enough = 400, points = 8;
  const RuleSet only(rule.name, {{table.name, table.domain, std::span(&rule, 1)}});
  Random random(std::hash<std::string_view>()(rule.name) + uint64_t(domain.scalar));
  Outcome out;
  Arena arena;
  for (int i = 0; i < most && out.fired < enough && out.fault.empty(); i++) {
    const UOp root = Instance(arena, random, rule.lhs, domain).root();
    const Steps steps = check_steps(root, only, rule.name, points, random);
    out.fired += steps.fired;
    out.fault = steps.fault;
  }
  return out;
}

struct Case {
  RuleTable table;
  const Rule* rule;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.rule->name; }

template <class Choose>
std::vector<Case> cases(std::span<const RuleTable> tables, Choose&& choose) {
  std::vector<Case> out;
  for (const RuleTable& table : tables) {
    for (const Rule& rule : table.rules) {
      if (rule.is_declarative() && choose(table)) out.push_back({table, &rule});
    }
  }
  return out;
}
std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name(info.param.rule->name);
  std::ranges::replace(name, '-', '_');
  return name;
}

class DeclarativeRule : public testing::TestWithParam<Case> {};
TEST_P(DeclarativeRule, AppliesAndKeepsTheValue) {
  const auto& [table, rule] = GetParam();
  for (const DType domain : members(table.domain)) {
    const Outcome outcome = try_rule(*rule, table, domain);
    EXPECT_EQ(outcome.fault, "") << domain.name();
    EXPECT_GT(outcome.fired, 0) << "never applied on " << domain.name();
  }
}
INSTANTIATE_TEST_SUITE_P(Symbolic, DeclarativeRule,
                         testing::ValuesIn(cases(symbolic_tables(),
                                                 [](const RuleTable&) { return true; })),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Right, DeclarativeRule,
                         testing::ValuesIn(cases(wrong::kTables,
                                                 [](const RuleTable& table) {
                                                   return table.name == "right";
                                                 })),
                         test_name);

class WrongRule : public testing::TestWithParam<Case> {};
TEST_P(WrongRule, IsCaught) {
  const auto& [table, rule] = GetParam();
  bool caught = false;
  for (const DType domain : members(table.domain)) {
    caught = caught || !try_rule(*rule, table, domain).fault.empty();
  }
  EXPECT_TRUE(caught);
}
INSTANTIATE_TEST_SUITE_P(Wrong, WrongRule,
                         testing::ValuesIn(cases(wrong::kTables,
                                                 [](const RuleTable& table) {
                                                   return table.name.starts_with("wrong");
                                                 })),
                         test_name);

}  // namespace
}  // namespace weft::test
