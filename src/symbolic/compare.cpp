// Comparisons of sums, minimum and maximum.
//
// a < b is brought to one form: what is positive in a - b on the left, what is negative on the
// right, common factors gone, terms that cannot matter gone, the constant on the right (on the left
// when nothing else is there).
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "symbolic/linear.h"
#include "symbolic/tables.h"

namespace weft {
namespace {
using namespace names;

UOp bool_like(Match& m, bool value) {
  return m.arena().make(Op::CONST, m.root().dtype(), {}, Arg::bits(value ? 1 : 0));
}

// d < 0, or d == 0, as a comparison of two sums without negative coefficients.
UOp build_comparison(Match& m, const LinearSum& d) {
  LinearSum left{d.dtype, {}, 0}, right{d.dtype, {}, 0};
  for (const Term& t : d.terms) {
    if (t.coefficient > 0) {
      left.terms.push_back(t);
    } else {
      right.terms.push_back({t.base, -t.coefficient});
    }
  }
  if (left.terms.empty() && m.root().is(Op::CMPLT)) {
    left.constant = d.constant;
  } else {
    right.constant = -d.constant;
  }
  return m.arena().make(m.root().op(), m.root().dtype(),
                        {build_sum(m.arena(), left), build_sum(m.arena(), right)});
}

std::optional<LinearSum> difference(Match& m) {
  const std::optional<LinearSum> a = linear_sum(m[x]), b = linear_sum(m[y]);
  if (!a || !b) return std::nullopt;
  std::optional<LinearSum> d = add_scaled(*a, *b, -1);
  // every number below is negated at some point: keep clear of the one that cannot be
  if (!d || d->constant == Interval::kLow) return std::nullopt;
  for (const Term& t : d->terms) {
    if (t.coefficient == Interval::kLow) return std::nullopt;
  }
  return d;
}

int64_t common_factor(const LinearSum& d) {
  int64_t g = 0;
  for (const Term& t : d.terms) g = std::gcd(g, t.coefficient);
  return g;
}

// f*m + rest < 0  ==  m + w < 0  when w*f <= rest < (w+1)*f
std::optional<LinearSum> without_small_terms(const LinearSum& d) {
  for (const Term& factor : d.terms) {
    const int64_t f = factor.coefficient < 0 ? -factor.coefficient : factor.coefficient;
    if (f == 1) continue;
    LinearSum m{d.dtype, {}, floor_div(d.constant, f)};
    LinearSum rest{d.dtype, {}, floor_mod(d.constant, f)};
    for (const Term& t : d.terms) {
      if (t.coefficient % f == 0) {
        m.terms.push_back({t.base, t.coefficient / f});
      } else {
        rest.terms.push_back(t);
      }
    }
    if (rest.terms.empty()) continue;  // a common factor: taken out already
    const Interval i = bounds(rest);
    if (i.lo == Interval::kLow || i.hi == Interval::kHigh) continue;
    const int64_t w = floor_div(i.lo, f);
    if (w != floor_div(i.hi, f)) continue;
    if (__builtin_add_overflow(m.constant, w, &m.constant)) continue;
    return m;
  }
  return std::nullopt;
}

UOp compare_less(Match& m) {
  std::optional<LinearSum> d = difference(m);
  if (!d) return UOp();
  const Interval i = bounds(*d);
  if (i.hi < 0) return bool_like(m, true);
  if (i.lo >= 0 && i.lo != Interval::kLow) return bool_like(m, false);
  const int64_t g = common_factor(*d);
  for (Term& t : d->terms) t.coefficient /= g;
  d->constant = floor_div(d->constant, g);  // g*s + k < 0  ==  s + k // g < 0
  if (const std::optional<LinearSum> less = without_small_terms(*d)) d = less;
  return d->constant == Interval::kLow ? UOp() : build_comparison(m, *d);
}

// An index that a cast does not change, beside a constant.
UOp compare_cast(Match& m) {
  const UOp a = m.root().src(0), b = m.root().src(1);
  const auto is_unchanged = [](UOp n) {
    const bool is_signed_word = n.dtype().bits() < 64 || !n.dtype().is_unsigned();
    return n.is(Op::CAST) && n.src(0).dtype().is_index() && is_signed_word &&
           bounds(n.src(0)).within(bounds_of(n.dtype()));
  };
  const bool is_left = is_unchanged(a) && b.is_const();
  if (!is_left && !(is_unchanged(b) && a.is_const())) return UOp();
  const UOp index = is_left ? a.src(0) : b.src(0);
  const UOp limit = m.arena().make(Op::CONST, index.dtype(), {},
                                   Arg::bits(uint64_t((is_left ? b : a).const_int())));
  return m.arena().make(m.root().op(), m.root().dtype(),
                        {is_left ? index : limit, is_left ? limit : index});
}

// Both == and !=.
UOp compare_equal(Match& m) {
  std::optional<LinearSum> d = difference(m);
  if (!d) return UOp();
  const bool when_apart = m.root().is(Op::CMPNE);
  const Interval i = bounds(*d);
  if (i.lo > 0 || i.hi < 0) return bool_like(m, when_apart);
  if (d->terms.empty()) return bool_like(m, (d->constant != 0) == when_apart);
  const int64_t g = common_factor(*d);
  if (d->constant % g != 0) return bool_like(m, when_apart);
  const int64_t scale = d->terms[0].coefficient < 0 ? -g : g;  // the first term comes out positive
  for (Term& t : d->terms) t.coefficient /= scale;
  d->constant /= scale;
  return build_comparison(m, *d);
}

// clang-format off
constexpr Rule kIntegerCompare[] = {
    rule("lt-always",        x < y,                     1).when(upper(x) < lower(y)),
    rule("lt-never",         x < y,                     0).when(!(lower(x) < upper(y))),
    rule("eq-apart",         x == y,                    0).when(upper(x) < lower(y)),
    rule("ne-apart",         x != y,                    1).when(upper(x) < lower(y)),
    rule("eq-add",           x + c0 == c1,              x == fold(c1 - c0)),
    rule("ne-add",           x + c0 != c1,              x != fold(c1 - c0)),
    rule("compare-cast",     op({Op::CMPLT, Op::CMPEQ, Op::CMPNE}, x, y), compare_cast),
    rule("max-above",        max(x, y),                 x).when(!(lower(x) < upper(y))),
    rule("min-below",        min(x, y),                 x).when(!(lower(y) < upper(x))),
    rule("max-max",          max(max(x, c0), c1),       max(x, fold(max(c0, c1)))),
    rule("min-min",          min(min(x, c0), c1),       min(x, fold(min(c0, c1)))),
    rule("max-max-self",     max(max(x, y), y),         max(x, y)),
    rule("min-min-self",     min(min(x, y), y),         min(x, y)),
    rule("max-min-absorb",   max(min(x, y), x),         x),
    rule("min-max-absorb",   min(max(x, y), x),         x),
};

constexpr Rule kIndexCompare[] = {
    rule("lt-add",           x + c0 < c1,               x < fold(c1 - c0)),
    rule("lt-add-left",      c0 < x + c1,               fold(c0 - c1) < x),
    rule("lt-div",           x / c0 < c1,               x < fold(c0 * c1)).when(c0 > 0),
    rule("lt-div-left",      c1 < x / c0,               fold((c1 + 1) * c0 - 1) < x).when(c0 > 0),
    rule("max-add",          max(x + c0, x + c1),       x + fold(max(c0, c1))),
    rule("min-add",          min(x + c0, x + c1),       x + fold(min(c0, c1))),
    rule("max-add-one",      max(x, x + c0),            x + fold(max(c0, 0))),
    rule("min-add-one",      min(x, x + c0),            x + fold(min(c0, 0))),
    rule("compare-less",     x < y,                     compare_less),
    rule("compare-equal",    op({Op::CMPEQ, Op::CMPNE}, x, y), compare_equal),
};

// Comparisons below and, or, not.
constexpr Rule kBoolCompare[] = {
    rule("not-lt",           !(x.of(kIndexes) < y),               y < x + 1),
    rule("and-lt-lt",        (x.of(kIntegers) < c0) & (x < c1),   x < fold(min(c0, c1))),
    rule("and-gt-gt",        (c0 < x.of(kIntegers)) & (c1 < x),   fold(max(c0, c1)) < x),
    rule("or-lt-lt",         (x.of(kIntegers) < c0) | (x < c1),   x < fold(max(c0, c1))),
    rule("or-gt-gt",         (c0 < x.of(kIntegers)) | (c1 < x),   fold(min(c0, c1)) < x),
    rule("and-lt-gt-empty",  (x.of(kIndexes) < c0) & (c1 < x),    0).when(c0 < c1 + 2),
    rule("or-lt-gt-all",     (x.of(kIndexes) < c0) | (c1 < x),    1).when(c1 < c0),
};
// clang-format on

constexpr RuleTable kTables[] = {
    {"integer comparisons", kIntegers, kIntegerCompare},
    {"index comparisons", kIndexes, kIndexCompare},
    {"comparisons under and, or, not", kBools, kBoolCompare},
};

}  // namespace

std::span<const RuleTable> compare_tables() { return kTables; }

}  // namespace weft
