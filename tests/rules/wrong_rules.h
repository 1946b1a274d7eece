// Rules that are wrong, each in its own way: the prover must refute every one of them, and prove
// their right neighbours. No rule set ever holds them.
#pragma once

#include <span>

#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft::wrong {
using namespace names;

inline constexpr DTypeSet kInt8 = set_of(Scalar::kInt8), kInt16 = set_of(Scalar::kInt16);

// clang-format off
inline constexpr Rule kIndexRules[] = {
    // a condition is missing, or half of it
    rule("div-of-mul-always",       (x * c0) / c1,           x * fold(c0 / c1)),
    rule("div-in-range-no-lower",   x / c0,                  0).when(upper(x) < c0),
    rule("div-self-always",         x / x,                   1),
    rule("cdiv-to-div-no-sign",     op(Op::CDIV, x, y),      x / y).when(lower(y) > 0),
    rule("mul-div-symbol-always",   (x * y) / y,             x),
    // the sign of a divisor
    rule("div-div-any-sign",        (x / c0) / c1,           x / fold(c0 * c1)),
    rule("lt-div-any-sign",         x / c0 < c1,             x < fold(c0 * c1)),
    rule("div-by-negative-outside", x / c0,                  -(x / fold(0 - c0))).when(c0 < 0),
    rule("mod-by-negative-plain",   x % c0,                  x % fold(0 - c0)).when(c0 < 0),
    rule("mod-of-mod-other-way",    (x % c0) % c1,           x % c1).when(c1 > 0 && c1 % c0 == 0),
    // a bound that is off by one
    rule("mod-in-range-at-limit",   x % c0,                  x).when(lower(x) > -1 && upper(x) < c0 + 1),
    rule("lt-div-left-no-last",     c1 < x / c0,             fold(c1 * c0) < x).when(c0 > 0),
    rule("lt-always-at-limit",      x < y,                   1).when(upper(x) < lower(y) + 1),
};

// What holds for exact integers does not for those that wrap.
inline constexpr Rule kMachineRules[] = {
    rule("machine-div-of-mul",      (x * c0) / c1,           x * fold(c0 / c1)).when(c1 > 0 && c0 % c1 == 0),
    rule("machine-lt-add",          x + c0 < c1,             x < fold(c1 - c0)),
    rule("machine-max-add",         max(x + c0, x + c1),     x + fold(max(c0, c1))),
    rule("machine-shl-shr",         (x << c0) >> c0,         x).when(c0 < 8),
    rule("machine-shl-shl",         (x << c0) << c1,         x << fold(c0 + c1)),
    rule("machine-negate-lt",       -x < -y,                 y < x),
};
inline constexpr Rule kUnsignedRules[] = {
    rule("unsigned-div-minus-one",  x / -1,                  -x),
    rule("unsigned-sub-lt-zero",    x - y < 0,               x < y),
};

inline constexpr Rule kBoolRules[] = {
    rule("and-lt-gt-off-by-one",    (x.of(kIndexes) < c0) & (c1 < x),   0).when(c0 < c1 + 3),
    rule("or-lt-gt-off-by-one",     (x.of(kIndexes) < c0) | (c1 < x),   1).when(c1 < c0 + 1),
    rule("machine-not-lt",          !(x.of(kMachineInts) < y),          y < x + 1),
    rule("float-not-lt",            !(x.of(kFloats) < y),               (y < x) | (x == y)),
    rule("and-not-absorb",          (x & y) | !x,                       y),
};

inline constexpr Rule kFloatRules[] = {
    rule("float-add-zero",          x + 0,                   x),
    rule("float-mul-zero",          x * 0,                   0),
    rule("float-sub-self",          x - x,                   0),
    rule("float-eq-self",           x == x,                  1),
    rule("float-div-self",          fdiv(x, x),              1),
    rule("float-add-add",           (x + c0) + c1,           x + fold(c0 + c1)),
    rule("float-max-where",         max(x, y),               where(x < y, y, x)),
};

// The rest of the pattern language.
inline constexpr Rule kLanguageRules[] = {
    rule("either-sign",             either(-x, x) + 0,                       x),
    rule("some-of-the-ops",         op({Op::ADD, Op::SUB, Op::MUL}, x, 0),   x),
    rule("named-sum",               as(w, x + y) - y,                        w),
    rule("where-where-other",       where(x, y, where(x, z, w)),             where(x, y, z)),
    rule("cast-there-and-back",     op(Op::CAST, op(Op::CAST, x.of(kInt16)).of(kInt8)).of(kInt16), x),
};

// A condition that never holds proves nothing: 0 - 1 is the largest unsigned number.
inline constexpr Rule kVacuousRules[] = {
    rule("never",                   x + c0,                  x).when(c0 < c0),
    rule("never-unsigned",          x / c0,                  1).when(lower(x) > -1),
};

// Right rules, in the same forms.
inline constexpr Rule kRightRules[] = {
    rule("right-either",            either(-(-x), x) + 0,                    x),
    rule("right-op-set",            op({Op::ADD, Op::SUB, Op::XOR}, x, 0),   x),
    rule("right-named-sum",         as(w, x + y) - w,                        0),
    rule("right-where-same",        where(x, y, y),                          y),
    rule("right-cast",              op(Op::CAST, op(Op::CAST, x.of(kInt8)).of(kInt16)).of(kInt8), x),
    rule("right-shl-shl",           (x << c0) << c1,                         x << fold(c0 + c1)).when(
                                    !(c0 < 0) && c0 < 8 && !(c1 < 0) && c1 < 8),
};
// clang-format on

inline constexpr RuleTable kTables[] = {
    {"wrong on index", kIndexes, kIndexRules},
    {"wrong on machine integers", kMachineInts, kMachineRules},
    {"wrong on unsigned integers", kUnsignedInts, kUnsignedRules},
    {"wrong on bool", kBools, kBoolRules},
    {"wrong on floats", kFloats, kFloatRules},
    {"wrong with the rest of the language", kMachineInts, kLanguageRules},
    {"vacuous", kUnsignedInts, kVacuousRules},
    {"right", kMachineInts, kRightRules},
};

}  // namespace weft::wrong
