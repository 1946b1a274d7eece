// Property tests of the rules whose body is C++: each is given random graphs on which it applies,
// and every step must keep the value at random points. A body rule without a property here is a
// failure.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
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
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "symbolic/simplify.h"
#include "tests/rules/check_steps.h"
#include "tests/rules/point.h"

namespace weft::test {
namespace {

// ---- random graphs

enum class Constants : uint8_t { kSmall, kNear64Bits };

// Graphs over a few ranges, variables and constants.
class Generator {
 public:
  Generator(Arena& arena, Random& random, Constants constants = Constants::kSmall)
      : arena_(arena), random_(random), constants_(constants) {
    for (int64_t i = 0; i < 3; i++) {
      leaves_.push_back(range(arena, number(1, 12), i));
      const int64_t low = number(-20, 20);
      leaves_.push_back(variable(arena, std::string(1, char('a' + i)), low, low + number(0, 40)));
    }
    size_ = variable(arena, "n", number(1, 4), number(5, 12));
    leaves_.push_back(range(arena, size_, 3));
    focus_ = leaf();
  }

  Arena& arena() { return arena_; }
  int64_t number(int64_t low, int64_t high) { return between(random_, low, high); }
  bool one_in(int64_t n) { return number(1, n) == 1; }
  // A constant of the graph: in [low, high], or now and then one that overflows soon.
  int64_t constant(int64_t low, int64_t high) {
    if (constants_ == Constants::kSmall || !one_in(8)) return number(low, high);
    const int64_t power = int64_t(1) << number(31, 62);
    const int64_t magnitude =
        one_in(3) ? std::numeric_limits<int64_t>::max() - number(0, 3) : power + number(-3, 3);
    return low > 0 || one_in(2) ? magnitude : -magnitude;
  }
  template <class T>
  T one_of(std::span<const T> list) {
    return list[size_t(number(0, int64_t(list.size()) - 1))];
  }
  UOp number_node(int64_t low, int64_t high) { return index_const(arena_, constant(low, high)); }
  UOp bits_node(DType type) { return constant_bits(arena_, type, random_bits(random_, type)); }
  UOp leaf() { return one_of<UOp>(leaves_); }
  UOp size() const { return size_; }  // from 1 up; leaf 3 is a range below it
  UOp range_below_size() const { return leaves_.back(); }

  // What sums are made of: leaves, quotients, remainders, products.
  UOp term(int depth = 1) {
    const int64_t kind = depth == 0 ? 0 : number(0, 7);
    if (kind == 1) return sum(depth - 1) / number(1, 12);
    if (kind == 2) return sum(depth - 1) % number(1, 12);
    if (kind == 3) return leaf() * leaf();
    if (kind == 4) return max(sum(depth - 1), sum(depth - 1));
    if (kind == 5) return min(sum(depth - 1), number_node(-9, 9));
    return leaf();
  }
  // a1*x1 + ... + k, in any order and shape.
  UOp sum(int depth = 1) {
    UOp out = one_in(3) ? number_node(-40, 40) : term(depth);
    for (int64_t i = number(0, 3); i > 0; i--) {
      const UOp t = term(depth);
      const UOp scaled = one_in(2) ? t : t * constant(-12, 12);
      out = one_in(2) ? scaled + out : one_in(3) ? out - scaled : out + scaled;
    }
    return one_in(2) ? out : out + constant(-40, 40);
  }
  UOp comparison() {
    constexpr std::array ops = {Op::CMPLT, Op::CMPEQ, Op::CMPNE};
    const UOp a = sum(0), b = one_in(2) ? sum(0) : number_node(-20, 20);
    return binary(one_of<Op>(ops), a, b);
  }
  // A condition that says something about a leaf, mostly about one and the same.
  UOp gate() {
    const UOp x = one_in(6) ? leaf() : focus_, c = number_node(-10, 15);
    UOp out = one_in(2) ? x < c : c < x;
    if (one_in(5)) out = equal(x, c);
    if (one_in(3)) out = out & comparison();
    if (one_in(8)) out = out | comparison();
    if (one_in(4)) out = out & gate();
    return one_in(8) ? unary(Op::NOT, out) : out;
  }
  // What such a condition can make simpler.
  UOp gated_value() {
    const UOp x = one_in(6) ? sum(0) : focus_;
    switch (number(0, 4)) {
      case 0: return max(x, number_node(-10, 15)) + leaf();
      case 1: return min(x, number_node(-10, 15)) * number(1, 5);
      case 2: return (x + number(-5, 5)) % number(1, 30) + leaf();
      case 3: return where(x < number_node(-10, 15), sum(0), leaf());
      default: return (x + number(0, 9)) / number(2, 30) * number(1, 5);
    }
  }
  UOp pointer(UOp at) {
    return index(define_global(arena_, dtypes::int32, Dim(int64_t(1000)), 0), at);
  }

 private:
  Arena& arena_;
  Random& random_;
  Constants constants_;
  std::vector<UOp> leaves_;
  UOp size_, focus_;
};

constexpr std::array kDTypes = {
    dtypes::bool_,   dtypes::int8,     dtypes::int16,       dtypes::int32,
    dtypes::int64,   dtypes::uint8,    dtypes::uint16,      dtypes::uint32,
    dtypes::uint64,  dtypes::index,    dtypes::float8_e4m3, dtypes::float8_e5m2,
    dtypes::float16, dtypes::bfloat16, dtypes::float32,     dtypes::float64};
constexpr std::array kIntegerDTypes = {dtypes::int8,   dtypes::int32,  dtypes::int64,
                                       dtypes::uint16, dtypes::uint64, dtypes::index};

UOp fold_unary(Generator& g) {
  constexpr std::array ops = {Op::CAST,  Op::NEG,   Op::NOT,  Op::RECIP, Op::SQRT,
                              Op::TRUNC, Op::FLOOR, Op::CEIL, Op::ROUND};
  const DType type = g.one_of<DType>(kDTypes);
  const Op op = g.one_of<Op>(ops);
  return g.arena().make(op, op == Op::CAST ? g.one_of<DType>(kDTypes) : type, {g.bits_node(type)});
}

UOp fold_binary(Generator& g) {
  constexpr std::array ops = {Op::ADD,  Op::SUB,  Op::MUL, Op::FDIV,  Op::IDIV,  Op::MOD,
                              Op::CDIV, Op::CMOD, Op::MAX, Op::MIN,   Op::AND,   Op::OR,
                              Op::XOR,  Op::SHL,  Op::SHR, Op::CMPLT, Op::CMPEQ, Op::CMPNE};
  const DType type = g.one_of<DType>(kDTypes);
  const Op op = g.one_of<Op>(ops);
  return g.arena().make(op, yields_bool(op) ? dtypes::bool_ : type,
                        {g.bits_node(type), g.bits_node(type)});
}

UOp fold_mulacc(Generator& g) {
  const DType type = g.one_of<DType>(kDTypes);
  return g.arena().make(Op::MULACC, type,
                        {g.bits_node(type), g.bits_node(type), g.bits_node(type)});
}

UOp constant_first(Generator& g) {
  constexpr std::array ops = {Op::ADD, Op::MUL, Op::MAX,   Op::MIN,  Op::AND,
                              Op::OR,  Op::XOR, Op::CMPEQ, Op::CMPNE};
  const DType type = g.one_of<DType>(kIntegerDTypes);
  const UOp x = variable(g.arena(), "i", 0, 100, type);
  return binary(g.one_of<Op>(ops), g.bits_node(type), x);
}

UOp mixed_sum(Generator& g) {
  const UOp y = g.sum(0);
  const int64_t d = g.number(1, 9), e = g.number(1, 5), a = g.number(-4, 4);
  const UOp rest = y % d * a;
  UOp other = y / d;
  if (g.one_in(3)) other = g.one_in(2) ? other % e : y / e / d;
  const UOp pair = other * (a * d) + rest;
  switch (g.number(0, 3)) {
    case 0: return pair + g.sum();
    case 1: return g.sum() + (rest + g.term()) + other * (a * d);
    case 2: return (y / g.size()) * (g.one_in(3) ? g.leaf() : g.size()) + g.leaf() + y % g.size();
    default: return g.sum() + g.sum();
  }
}

UOp product(Generator& g) {
  UOp out = g.term();
  for (int64_t i = g.number(1, 3); i > 0; i--) out = g.one_in(2) ? out * g.term() : g.term() * out;
  return g.one_in(3) ? out * g.number(-9, 9) * g.leaf() : out;
}

UOp quotient_of_sum(Generator& g) {
  const int64_t c = g.constant(1, 24);
  const bool whole = c < 1000 && g.one_in(2);
  const UOp n = whole ? g.leaf() * (c * g.number(-3, 3)) + g.sum() : g.sum();
  return n / (g.one_in(8) ? -c : c);
}
UOp remainder_of_sum(Generator& g) {
  const UOp q = quotient_of_sum(g);
  return g.arena().make(Op::MOD, dtypes::index, {q.src(0), q.src(1)});
}

UOp quotient_by_symbol(Generator& g) {
  const UOp d = g.one_in(4) ? variable(g.arena(), "m", g.number(-3, 2), g.number(3, 9)) : g.size();
  UOp n = g.leaf() * d + (g.one_in(2) ? g.range_below_size() : g.leaf());
  if (g.one_in(3)) n = n + d * g.number(-3, 3);
  if (g.one_in(4)) n = g.range_below_size();
  return n / d;
}
UOp remainder_by_symbol(Generator& g) {
  const UOp q = quotient_by_symbol(g);
  return g.arena().make(Op::MOD, dtypes::index, {q.src(0), q.src(1)});
}

UOp less(Generator& g) {
  const UOp a = g.sum(), b = g.one_in(2) ? g.sum() : g.number_node(-60, 60);
  return g.one_in(2) ? a < b : b < a;
}
UOp equality(Generator& g) {
  const UOp a = g.sum(), b = g.one_in(2) ? g.sum() : g.number_node(-30, 30);
  return g.one_in(2) ? equal(a, b) : not_equal(a, b);
}

UOp comparison_of_cast(Generator& g) {
  constexpr std::array ops = {Op::CMPLT, Op::CMPEQ, Op::CMPNE};
  const DType type = g.one_of<DType>(kIntegerDTypes);
  const UOp x = cast(g.one_in(2) ? g.leaf() : g.sum(0), type);
  const UOp limit = g.arena().make(Op::CONST, type, {}, Arg::bits(uint64_t(g.number(0, 100))));
  const Op op = g.one_of<Op>(ops);
  return g.one_in(2) ? binary(op, x, limit) : binary(op, limit, x);
}

UOp gated_where(Generator& g) { return where(g.gate(), g.gated_value(), g.gated_value()); }

UOp gated_load(Generator& g) {
  const UOp gate = g.gate(), at = g.pointer(g.gated_value());
  return load(at, gate, constant(g.arena(), dtypes::int32, 7));
}

UOp gated_store(Generator& g) {
  const UOp gate = g.gate(), at = g.pointer(g.one_in(2) ? g.gated_value() : g.leaf());
  return at.assign(cast(g.gated_value(), dtypes::int32), gate);
}

UOp joined_gates(Generator& g) {
  const UOp a = g.gate(), b = g.gated_value() < g.number_node(-10, 15);
  return g.one_in(2) ? a & b : b | a;
}

// ---- properties

struct Property {
  std::string_view rule;
  UOp (*make)(Generator&);
};
std::ostream& operator<<(std::ostream& out, const Property& p) { return out << p.rule; }

constexpr Property kProperties[] = {
    {"fold-unary", fold_unary},
    {"fold-binary", fold_binary},
    {"fold-mulacc", fold_mulacc},
    {"const-right", constant_first},
    {"canonical-sum", mixed_sum},
    {"canonical-product", product},
    {"divide-sum", quotient_of_sum},
    {"remainder-of-sum", remainder_of_sum},
    {"divide-by-symbol", quotient_by_symbol},
    {"remainder-by-symbol", remainder_by_symbol},
    {"compare-less", less},
    {"compare-equal", equality},
    {"compare-cast", comparison_of_cast},
    {"narrow-where", gated_where},
    {"narrow-load", gated_load},
    {"narrow-store", gated_store},
    {"narrow-join", joined_gates},
};

// The rule by itself, in a set of its own.
RuleSet alone(std::string_view name) {
  for (const RuleTable& table : symbolic_tables()) {
    for (const Rule& rule : table.rules) {
      if (rule.name == name)
        return RuleSet(name, {{table.name, table.domain, std::span(&rule, 1)}});
    }
  }
  return RuleSet(name, std::span<const RuleTable>());
}

class BodyRule : public testing::TestWithParam<Property> {};

// How often the rule applied: to the graph as it was made, by the rule alone, and among all rules,
// which see it in simpler forms.
int check_property(const Property& property, Constants constants, int graphs) {
  constexpr int points = 12;
  const RuleSet only = alone(property.rule);
  Random random(std::hash<std::string_view>()(property.rule));
  int fired = 0;
  for (int i = 0; i < graphs; i++) {
    Arena arena;
    Generator generator(arena, random, constants);
    const UOp root = property.make(generator);
    for (const RuleSet* rules : {&only, &symbolic_rules()}) {
      const Steps steps = check_steps(root, *rules, property.rule, points, random);
      EXPECT_EQ(steps.fault, "") << "graph " << i;
      if (!steps.fault.empty()) return fired;
      fired += steps.fired;
    }
  }
  testing::Test::RecordProperty("fired", fired);
  return fired;
}

TEST_P(BodyRule, KeepsTheValue) {
  constexpr int graphs = 1500;
  EXPECT_GE(check_property(GetParam(), Constants::kSmall, graphs), graphs / 8);
}

TEST_P(BodyRule, KeepsTheValueNear64Bits) {
  constexpr int graphs = 1000;
  EXPECT_GE(check_property(GetParam(), Constants::kNear64Bits, graphs), graphs / 10);
}

std::string test_name(const testing::TestParamInfo<Property>& info) {
  std::string name(info.param.rule);
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Symbolic, BodyRule, testing::ValuesIn(kProperties), test_name);

// 27 - (-1)*c does not fit: the sum must be left alone.
TEST(BodyRules, ARemainderByAlmostTwoToThe63DoesNotWrap) {
  Arena arena;
  const UOp below_zero = min(range(arena, 3, 0) - 31, index_const(arena, -9)) + 27;
  const UOp root = below_zero % (std::numeric_limits<int64_t>::max() - 3);
  Random random(std::hash<std::string_view>()("remainder-of-sum"));
  for (const RuleSet& rules : {alone("remainder-of-sum"), alone("divide-sum"), symbolic_rules()}) {
    EXPECT_EQ(check_steps(root, rules, "remainder-of-sum", 12, random).fault, "");
  }
}

// A check that finds nothing is worth nothing.
TEST(BodyRules, AWrongBodyIsFound) {
  using namespace names;
  static constexpr Rule kWrong[] = {
      rule("wrong-quotient", x / c0,  // forgets the remainder of k
           [](Match& m) -> UOp { return m[x].is(Op::ADD) ? m[x].src(0) / m[c0] : UOp(); }),
  };
  const RuleSet wrong("wrong", {{"wrong", kIndexes, kWrong}});
  Random random(std::hash<std::string_view>()("wrong-quotient"));
  int found = 0;
  for (int i = 0; i < 100; i++) {
    Arena arena;
    Generator generator(arena, random);
    const UOp root = quotient_of_sum(generator);
    found += check_steps(root, wrong, "wrong-quotient", 12, random).fault.empty() ? 0 : 1;
  }
  EXPECT_GT(found, 10);
}

TEST(BodyRules, EachHasAProperty) {
  std::vector<std::string_view> bodies, tested;
  for (const RuleTable& table : symbolic_tables()) {
    for (const Rule& rule : table.rules) {
      if (!rule.is_declarative()) bodies.push_back(rule.name);
    }
  }
  for (const Property& p : kProperties) tested.push_back(p.rule);
  std::ranges::sort(bodies);
  std::ranges::sort(tested);
  EXPECT_EQ(bodies, tested);
}

}  // namespace
}  // namespace weft::test
