// Floor division and remainder of sums.
//
// For n = a1*x1 + ... + k and a constant c > 0, n // c and n % c are split in step; each step is an
// identity of floor division (q, r for quotient and remainder):
//   window     w*c <= n < (w+1)*c         q = w                         r = n - w*c
//   common     g | all ai, g | c          q = (n/g) // (c/g)            r = (n/g % (c/g))*g + k % g
//   multiples  n = c*m + rest             q = m + rest // c             r = rest % c
//   congruent  n = c*m + rest, rest in one window w of c                q = m + w, r = rest - w*c
//   nested     n = f*m + rest, f | c, rest in one window w of f:
//                                         q = (m + w) // (c/f)          r = (m + w) % (c/f) * f +
//                                         rest - w*f
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

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

// Sums with larger numbers or bounds are left alone: nothing below overflows then.
constexpr int64_t kMostNumber = int64_t(1) << 60, kMostBound = int64_t(1) << 62;

// n // c as `whole` + `inner` // `divisor` (no division where inner is empty), and
// n % c as `left` + (`inner` % `divisor`) * `scale`.
struct Split {
  LinearSum whole, left;
  std::optional<LinearSum> inner;
  int64_t divisor = 1, scale = 1;
};

// The w with w*c <= i < (w+1)*c for all of i, if there is one.
std::optional<int64_t> window(Interval i, int64_t c) {
  if (i.lo < -kMostBound || i.hi > kMostBound) return std::nullopt;
  const int64_t w = floor_div(i.lo, c);
  return w == floor_div(i.hi, c) ? std::optional(w) : std::nullopt;
}

LinearSum empty_like(const LinearSum& s) { return {s.dtype, {}, 0}; }

// s = f*m + rest by coefficients: `pick` says what of a coefficient goes to m.
struct Parts {
  LinearSum m, rest;
};
template <class Pick>
Parts partition(const LinearSum& s, int64_t f, Pick&& pick) {
  Parts p{empty_like(s), empty_like(s)};
  for (const Term& t : s.terms) {
    const int64_t q = pick(t);
    if (q != 0) p.m.terms.push_back({t.base, q});
    const int64_t r = t.coefficient - q * f;
    if (r != 0) p.rest.terms.push_back({t.base, r});
  }
  p.m.constant = floor_div(s.constant, f);
  p.rest.constant = floor_mod(s.constant, f);
  return p;
}

std::optional<Split> by_window(const LinearSum& n, int64_t c) {
  const std::optional<int64_t> w = window(bounds(n), c);
  if (!w) return std::nullopt;
  Split s{empty_like(n), n, std::nullopt};
  s.whole.constant = *w;
  s.left.constant -= *w * c;
  return s;
}

std::optional<Split> by_common_factor(const LinearSum& n, int64_t c) {
  int64_t g = c;
  for (const Term& t : n.terms) g = std::gcd(g, t.coefficient);
  if (g <= 1) return std::nullopt;
  Split s{empty_like(n), empty_like(n), n, c / g, g};
  for (Term& t : s.inner->terms) t.coefficient /= g;
  s.inner->constant = floor_div(n.constant, g);
  s.left.constant = floor_mod(n.constant, g);
  return s;
}

std::optional<Split> by_multiples(const LinearSum& n, int64_t c) {
  Parts p = partition(
      n, c, [&](const Term& t) { return t.coefficient % c == 0 ? t.coefficient / c : 0; });
  if (p.m.terms.empty() && p.m.constant == 0) return std::nullopt;
  return Split{p.m, empty_like(n), p.rest, c};
}

// Every coefficient has two residues near 0: try the one that is not negative, then the smaller.
std::optional<Split> by_congruence(const LinearSum& n, int64_t c) {
  for (const bool smaller : {false, true}) {
    Parts p = partition(n, c, [&](const Term& t) {
      const int64_t q = floor_div(t.coefficient, c);
      return smaller && floor_mod(t.coefficient, c) > c / 2 ? q + 1 : q;
    });
    if (p.m.terms.empty() && p.m.constant == 0) continue;
    const std::optional<int64_t> w = window(bounds(p.rest), c);
    if (!w) continue;
    Split s{p.m, p.rest, std::nullopt};
    if (__builtin_add_overflow(s.whole.constant, *w, &s.whole.constant)) continue;
    s.left.constant -= *w * c;
    return s;
  }
  return std::nullopt;
}

std::optional<Split> by_nesting(const LinearSum& n, int64_t c) {
  std::vector<int64_t> factors;
  for (const Term& t : n.terms) {
    const int64_t f = std::gcd(t.coefficient, c);
    if (f > 1 && f < c) factors.push_back(f);
  }
  std::sort(factors.rbegin(), factors.rend());
  factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
  for (const int64_t f : factors) {
    Parts p = partition(
        n, f, [&](const Term& t) { return t.coefficient % f == 0 ? t.coefficient / f : 0; });
    const std::optional<int64_t> w = window(bounds(p.rest), f);
    if (!w) continue;
    Split s{empty_like(n), p.rest, p.m, c / f, f};
    if (__builtin_add_overflow(s.inner->constant, *w, &s.inner->constant)) continue;
    s.left.constant -= *w * f;
    return s;
  }
  return std::nullopt;
}

bool is_moderate(int64_t v) { return -kMostNumber <= v && v <= kMostNumber; }

std::optional<Split> split(const LinearSum& n, int64_t c) {
  if (!is_moderate(c) || !is_moderate(n.constant)) return std::nullopt;
  for (const Term& t : n.terms) {
    if (!is_moderate(t.coefficient)) return std::nullopt;
  }
  constexpr std::optional<Split> (*steps[])(const LinearSum&, int64_t) = {
      by_window, by_common_factor, by_multiples, by_congruence, by_nesting};
  for (const auto& step : steps) {
    if (std::optional<Split> s = step(n, c)) return s;
  }
  return std::nullopt;
}

UOp constant_like(Arena& arena, DType type, int64_t v) {
  return arena.make(Op::CONST, type, {}, Arg::bits(uint64_t(v)));
}

UOp divide_sum(Match& m) {
  const int64_t c = m[c0].const_int();
  const std::optional<LinearSum> n = linear_sum(m[x]);
  if (c <= 0 || !n) return UOp();
  std::optional<Split> s = split(*n, c);
  if (!s) return UOp();
  if (!s->inner) return build_sum(m.arena(), s->whole);
  const UOp inner = build_sum(m.arena(), *s->inner);
  const UOp quotient =
      m.arena().make(Op::IDIV, n->dtype, {inner, constant_like(m.arena(), n->dtype, s->divisor)});
  const std::optional<LinearSum> total = add_scaled(s->whole, {n->dtype, {{quotient, 1}}, 0}, 1);
  return total ? build_sum(m.arena(), *total) : UOp();
}

// a*(y % d) % c == a*y % c when c divides a*d: the inner remainder says nothing more.
std::optional<LinearSum> without_inner_remainders(const LinearSum& n, int64_t c) {
  LinearSum out = empty_like(n);
  out.constant = n.constant;
  bool changed = false;
  for (const Term& t : n.terms) {
    const bool is_remainder = t.base.is(Op::MOD) && t.base.src(1).is_const();
    const int64_t d = is_remainder ? t.base.src(1).const_int() : 0;
    int64_t scaled = 0;
    const bool drop =
        d > 0 && !__builtin_mul_overflow(t.coefficient, d, &scaled) && scaled % c == 0;
    const std::optional<LinearSum> y = drop ? linear_sum(t.base.src(0)) : std::nullopt;
    const LinearSum term = y ? *y : LinearSum{n.dtype, {{t.base, 1}}, 0};
    const std::optional<LinearSum> next = add_scaled(out, term, t.coefficient);
    if (!next) return std::nullopt;
    out = *next;
    changed |= y.has_value();
  }
  return changed ? std::optional(out) : std::nullopt;
}

UOp remainder_of_sum(Match& m) {
  const int64_t c = m[c0].const_int();
  const std::optional<LinearSum> n = linear_sum(m[x]);
  if (c <= 0 || !n) return UOp();
  auto remainder = [&](const LinearSum& sum, int64_t divisor) {
    return m.arena().make(Op::MOD, n->dtype,
                          {build_sum(m.arena(), sum), constant_like(m.arena(), n->dtype, divisor)});
  };
  const std::optional<Split> s = split(*n, c);
  if (!s) {
    const std::optional<LinearSum> plain = without_inner_remainders(*n, c);
    return plain ? remainder(*plain, c) : UOp();
  }
  if (!s->inner) return build_sum(m.arena(), s->left);
  const std::optional<LinearSum> total =
      add_scaled(s->left, {n->dtype, {{remainder(*s->inner, s->divisor), 1}}, 0}, s->scale);
  return total ? build_sum(m.arena(), *total) : UOp();
}

// ------------------------------------------------------------------- divisors that are not
// constant

// Whether 0 <= n < d is known.
bool is_below(const LinearSum& n, UOp d) {
  const Interval i = bounds(n), limit = bounds(d);
  if (i.lo < 0 || i.lo == Interval::kLow) return false;
  if (i.hi != Interval::kHigh && i.hi < limit.lo) return true;
  const bool one = n.terms.size() == 1 && n.terms[0].coefficient == 1 && n.constant == 0;
  return one && (n.terms[0].base.is(Op::RANGE) || n.terms[0].base.is(Op::SPECIAL)) &&
         n.terms[0].base.src(0) == d;
}

// n = d*m + rest with 0 <= rest < d, where m collects the terms with a factor d.
struct SymbolicSplit {
  LinearSum m, rest;
};
std::optional<SymbolicSplit> split_by(UOp n, UOp d) {
  const std::optional<LinearSum> sum = linear_sum(n);
  if (!sum || d.is_const() || bounds(d).lo <= 0) return std::nullopt;
  SymbolicSplit s{empty_like(*sum), empty_like(*sum)};
  s.rest.constant = sum->constant;
  for (const Term& t : sum->terms) {
    if (t.base == d) {
      s.m.constant += t.coefficient;
    } else if (t.base.is(Op::MUL) && (t.base.src(0) == d || t.base.src(1) == d)) {
      s.m.terms.push_back({t.base.src(t.base.src(0) == d ? 1 : 0), t.coefficient});
    } else {
      s.rest.terms.push_back(t);
    }
  }
  if (s.m.terms.empty() && s.m.constant == 0 && !is_below(s.rest, d)) return std::nullopt;
  return s;
}

UOp divide_by_symbol(Match& m) {
  const std::optional<SymbolicSplit> s = split_by(m[x], m[y]);
  if (!s) return UOp();
  const UOp whole = build_sum(m.arena(), s->m);
  if (is_below(s->rest, m[y])) return whole;
  const DType type = m.root().dtype();
  const UOp inner = m.arena().make(Op::IDIV, type, {build_sum(m.arena(), s->rest), m[y]});
  return m.arena().make(Op::ADD, type, {whole, inner});
}

UOp remainder_by_symbol(Match& m) {
  const std::optional<SymbolicSplit> s = split_by(m[x], m[y]);
  if (!s) return UOp();
  const UOp rest = build_sum(m.arena(), s->rest);
  return is_below(s->rest, m[y]) ? rest : m.arena().make(Op::MOD, m.root().dtype(), {rest, m[y]});
}

// clang-format off
constexpr Rule kDivMod[] = {
    rule("div-in-range",     x / c0,                    0).when(lower(x) > -1 && upper(x) < c0),
    rule("mod-in-range",     x % c0,                    x).when(lower(x) > -1 && upper(x) < c0),
    rule("div-by-negative",  x / c0,                    (x * -1) / fold(0 - c0)).when(c0 < 0),
    rule("mod-by-negative",  x % c0,                    ((x * -1) % fold(0 - c0)) * -1).when(c0 < 0),
    rule("div-div",          (x / c0) / c1,             x / fold(c0 * c1)).when(c1 > 0),
    rule("div-add-div",      (x / c0 + c1) / c2,        (x + fold(c0 * c1)) / fold(c0 * c2)).when(c0 > 0 && c2 > 0),
    rule("mod-of-mod",       (x % c0) % c1,             x % c1).when(c1 > 0 && c0 % c1 == 0),
    rule("div-of-mod",       (x % c0) / c1,             (x / c1) % fold(c0 / c1)).when(c0 > 0 && c1 > 0 && c0 % c1 == 0),
    rule("div-of-mul",       (x * c0) / c1,             x * fold(c0 / c1)).when(c1 > 0 && c0 % c1 == 0),
    rule("mod-of-mul",       (x * c0) % c1,             0).when(c1 > 0 && c0 % c1 == 0),
    rule("div-of-sum",       (x * c0 + y) / c1,         x * fold(c0 / c1) + y / c1).when(c1 > 0 && c0 % c1 == 0),
    rule("mod-of-sum",       (x * c0 + y) % c1,         y % c1).when(c1 > 0 && c0 % c1 == 0),
    rule("mul-div-symbol",   (x * y) / y,               x).when(lower(y) > 0 || upper(y) < 0),
    rule("mul-mod-symbol",   (x * y) % y,               0),
    rule("divide-sum",       x / c0,                    divide_sum),
    rule("remainder-of-sum", x % c0,                    remainder_of_sum),
    rule("divide-by-symbol", x / nonconst(y),           divide_by_symbol),
    rule("remainder-by-symbol", x % nonconst(y),        remainder_by_symbol),
    rule("cdiv-to-div",      op(Op::CDIV, x, y),        x / y).when(lower(x) > -1 && lower(y) > -1),
    rule("cmod-to-mod",      op(Op::CMOD, x, y),        x % y).when(lower(x) > -1 && lower(y) > -1),
};
// clang-format on

constexpr RuleTable kTables[] = {{"division", kIndexes, kDivMod}};

}  // namespace

std::span<const RuleTable> divmod_tables() { return kTables; }

}  // namespace weft
