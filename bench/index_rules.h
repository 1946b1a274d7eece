// The rules of the rewrite benchmark: plain integer identities that every engine can state. They
// are handed to tinygrad as JSON, so both run the same ones in the same order.
#pragma once

#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft::bench {
namespace rules {
using namespace names;

// clang-format off
inline constexpr Rule kIndex[] = {
    rule("fold-add",         c0 + c1,                   fold(c0 + c1)),
    rule("fold-mul",         c0 * c1,                   fold(c0 * c1)),
    rule("fold-div",         c0 / c1,                   fold(c0 / c1)),
    rule("fold-mod",         c0 % c1,                   fold(c0 % c1)),
    rule("fold-max",         max(c0, c1),               fold(max(c0, c1))),
    rule("fold-lt",          c0 < c1,                   fold(c0 < c1)),
    rule("add-zero",         x + 0,                     x),
    rule("mul-one",          x * 1,                     x),
    rule("mul-zero",         x * 0,                     0),
    rule("div-one",          x / 1,                     x),
    rule("div-minus-one",    x / -1,                    x * -1),
    rule("mod-one",          x % 1,                     0),
    rule("mod-self",         x % x,                     0),
    rule("mod-mod",          (x % y) % y,               x % y),
    rule("lt-self",          x < x,                     0),
    rule("max-self",         max(x, x),                 x),
    rule("where-same",       where(x, y, y),            y),
    rule("where-true",       where(1, x, y),            x),
    rule("where-false",      where(0, x, y),            y),
    rule("collect-mul",      x * c0 + x * c1,           x * fold(c0 + c1)),
    rule("collect-mul-deep", (y + x * c0) + x * c1,     y + x * fold(c0 + c1)),
    rule("collect-one",      x + x * c0,                x * fold(c0 + 1)),
    rule("collect-one-deep", (y + x) + x * c0,          y + x * fold(c0 + 1)),
    rule("collect-deep-one", (y + x * c0) + x,          y + x * fold(c0 + 1)),
    rule("double",           x + x,                     x * 2),
    rule("double-deep",      (y + x) + x,               y + x * 2),
    rule("recombine",        (x / c0) * c0 + x % c0,    x),
    rule("add-add",          (x + c0) + c1,             x + fold(c0 + c1)),
    rule("mul-mul",          (x * c0) * c1,             x * fold(c0 * c1)),
    rule("max-max",          max(max(x, c0), c1),       max(x, fold(max(c0, c1)))),
    rule("add-drift",        (x + c0) + nonconst(y),    (x + y) + c0),
    rule("mul-drift",        (x * c0) * nonconst(y),    (x * y) * c0),
    rule("distribute",       c0 * (x + c1),             x * c0 + fold(c0 * c1)),
    rule("div-div",          (x / c0) / c1,             x / fold(c0 * c1)).when(c1 > 0),
    rule("div-of-mul",       (x * c0) / c1,             x * fold(c0 / c1)).when(c1 > 0 && c0 % c1 == 0),
    rule("div-of-mul-less",  (x * c0) / c1,             x / fold(c1 / c0)).when(c0 > 0 && c1 % c0 == 0),
    rule("mod-of-mul",       (x * c0) % c1,             0).when(c1 > 0 && c0 % c1 == 0),
    rule("mod-of-mul-less",  (x * c0) % c1,             (x % fold(c1 / c0)) * c0).when(c0 > 0 && c1 % c0 == 0),
    rule("div-of-sum",       (x * c0 + y) / c1,         x * fold(c0 / c1) + y / c1).when(c1 > 0 && c0 % c1 == 0),
    rule("mod-of-sum",       (x * c0 + y) % c1,         y % c1).when(c1 > 0 && c0 % c1 == 0),
    rule("div-of-add",       (x + c0) / c1,             x / c1 + fold(c0 / c1)).when(c1 > 0 && c0 % c1 == 0),
    rule("mod-of-add",       (x + c0) % c1,             x % c1).when(c1 > 0 && c0 % c1 == 0),
    rule("mod-of-mod",       (x % c0) % c1,             x % c1).when(c1 > 0 && c0 % c1 == 0),
    rule("lt-add",           x + c0 < c1,               x < fold(c1 - c0)),
    rule("lt-div",           x / c0 < c1,               x < fold(c0 * c1)).when(c0 > 0),
    rule("max-add",          max(x + c0, x + c1),       x + fold(max(c0, c1))),
};
// clang-format on
}  // namespace rules

inline constexpr RuleTable kIndexTable{"benchmark", kAnyDType, rules::kIndex};

}  // namespace weft::bench
