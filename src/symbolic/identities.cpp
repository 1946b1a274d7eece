// Neutral and absorbing elements, idempotence, double negation: what holds for which dtype.
#include <span>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "symbolic/tables.h"

namespace weft {
namespace {
using namespace names;

constexpr OpSet kCommutative = {Op::ADD, Op::MUL, Op::MAX,   Op::MIN,  Op::AND,
                                Op::OR,  Op::XOR, Op::CMPEQ, Op::CMPNE};

UOp constant_to_the_right(Match& m) {
  const UOp n = m.root();
  const UOp swapped[] = {n.src(1), n.src(0)};
  return m.arena().with_srcs(n, swapped);
}

// clang-format off
constexpr Rule kIntegerIdentities[] = {
    rule("const-right",      op(kCommutative, c0, nonconst(x)), constant_to_the_right),
    rule("add-zero",         x + 0,                     x),
    rule("sub-zero",         x - 0,                     x),
    rule("sub-self",         x - x,                     0),
    rule("mul-one",          x * 1,                     x),
    rule("mul-zero",         x * 0,                     0),
    rule("neg-neg",          -(-x),                     x),
    rule("div-one",          x / 1,                     x),
    rule("div-zero",         x / 0,                     0),
    rule("zero-div",         0 / x,                     0),
    rule("div-self",         x / x,                     1).when(lower(x) > 0 || upper(x) < 0),
    rule("mod-one",          x % 1,                     0),
    rule("mod-zero",         x % 0,                     x),
    rule("mod-self",         x % x,                     0),
    rule("zero-mod",         0 % x,                     0),
    rule("mod-mod",          (x % y) % y,               x % y),
    rule("max-self",         max(x, x),                 x),
    rule("min-self",         min(x, x),                 x),
    rule("and-self",         x & x,                     x),
    rule("or-self",          x | x,                     x),
    rule("xor-self",         x ^ x,                     0),
    rule("and-zero",         x & 0,                     0),
    rule("or-zero",          x | 0,                     x),
    rule("xor-zero",         x ^ 0,                     x),
    rule("shl-zero",         x << 0,                    x),
    rule("shr-zero",         x >> 0,                    x),
    rule("not-not",          !!x,                       x),
    rule("lt-self",          x < x,                     0),
    rule("eq-self",          x == x,                    1),
    rule("ne-self",          x != x,                    0),
};

// -1 is the largest number of an unsigned dtype: not for those.
constexpr Rule kSignedIdentities[] = {
    rule("div-minus-one",    x / -1,                    -x),
    rule("mod-minus-one",    x % -1,                    0),
};

constexpr Rule kBoolIdentities[] = {
    rule("and-true",         x & 1,                     x),
    rule("and-false",        x & 0,                     0),
    rule("or-true",          x | 1,                     1),
    rule("or-false",         x | 0,                     x),
    rule("xor-true",         x ^ 1,                     !x),
    rule("xor-false",        x ^ 0,                     x),
    rule("bool-and-self",    x & x,                     x),
    rule("bool-or-self",     x | x,                     x),
    rule("bool-xor-self",    x ^ x,                     0),
    rule("bool-not-not",     !!x,                       x),
    rule("and-not-self",     x & !x,                    0),
    rule("or-not-self",      x | !x,                    1),
    rule("and-and-self",     (x & y) & x,               x & y),
    rule("or-or-self",       (x | y) | x,               x | y),
    rule("and-or-absorb",    (x | y) & x,               x),
    rule("or-and-absorb",    (x & y) | x,               x),
    rule("bool-ne-false",    x != 0,                    x),
    rule("bool-ne-true",     x != 1,                    !x),
    rule("bool-eq-false",    x == 0,                    !x),
    rule("bool-eq-true",     x == 1,                    x),
    rule("where-true-false", where(x, 1, 0),            x),
    rule("where-false-true", where(x, 0, 1),            !x),
    rule("not-eq",           !(x == y),                 x != y),
    rule("not-ne",           !(x != y),                 x == y),
};

constexpr Rule kWhere[] = {
    rule("where-true",       where(1, x, y),            x),
    rule("where-false",      where(0, x, y),            y),
    rule("where-same",       where(x, y, y),            y),
    rule("where-not",        where(!x, y, z),           where(x, z, y)),
    rule("where-where-then", where(x, where(x, y, z), w), where(x, y, w)),
    rule("where-where-else", where(x, y, where(x, z, w)), where(x, y, w)),
};

// IEEE: x + 0 is not x for x = -0, x * 0 is not 0 for infinities, x - x is not 0 for NaN.
constexpr Rule kFloatIdentities[] = {
    rule("float-mul-one",    x * 1,                     x),
    rule("float-div-one",    fdiv(x, 1),                x),
    rule("float-sub-zero",   x - literal(0.0),          x),
    rule("float-add-minus-zero", x + literal(-0.0),     x),
    rule("float-neg-neg",    -(-x),                     x),
    rule("float-max-self",   max(x, x),                 x),
    rule("float-min-self",   min(x, x),                 x),
    rule("float-mul-minus-one", x * -1,                 -x),
    rule("float-lt-self",    x < x,                     0),
};
// clang-format on

constexpr RuleTable kTables[] = {
    {"integer identities", kIntegers, kIntegerIdentities},
    {"signed identities", kSignedInts | kIndexes, kSignedIdentities},
    {"bool identities", kBools, kBoolIdentities},
    {"where", kAnyDType, kWhere},
    {"float identities", kFloats, kFloatIdentities},
};

}  // namespace

std::span<const RuleTable> identity_tables() { return kTables; }

}  // namespace weft
