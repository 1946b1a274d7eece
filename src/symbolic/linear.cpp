// Flattening sums and putting them back in one order.
#include "symbolic/linear.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft {
namespace {

// Longer sums are left as they are: it bounds the work per node.
constexpr size_t kMostTerms = 48;

bool by_base(const Term& a, const Term& b) { return canonical_less(a.base, b.base); }

int rank(UOp n) {
  if (n.is(Op::VARIABLE)) return 0;
  if (n.is(Op::SPECIAL)) return 1;
  return n.is(Op::RANGE) ? 2 : 3;
}

// Sorts, merges equal bases, drops what cancels; false on overflow.
bool normalise(std::vector<Term>& terms) {
  std::sort(terms.begin(), terms.end(), by_base);
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    Term sum = terms[i++];
    for (; i < terms.size() && terms[i].base == sum.base; i++) {
      if (__builtin_add_overflow(sum.coefficient, terms[i].coefficient, &sum.coefficient)) {
        return false;
      }
    }
    if (sum.coefficient != 0) terms[kept++] = sum;
  }
  terms.resize(kept, Term{UOp(), 0});
  return true;
}

}  // namespace

int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}

int64_t floor_mod(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r < 0 ? r + b : r;
}

bool canonical_less(UOp a, UOp b) {
  if (a == b) return false;
  const int ra = rank(a), rb = rank(b);
  if (ra != rb) return ra < rb;
  if (ra <= 1 && a.name() != b.name()) return a.name() < b.name();
  if (ra == 2 && a.range_id() != b.range_id()) return a.range_id() < b.range_id();
  if (a.hash() != b.hash()) return a.hash() < b.hash();
  return a.id() < b.id();
}

std::optional<LinearSum> linear_sum(UOp n) {
  LinearSum out{n.dtype(), {}, 0};
  std::vector<Term> todo{{n, 1}};
  size_t steps = 0;
  while (!todo.empty()) {
    const auto [node, scale] = todo.back();
    todo.pop_back();
    if (++steps > 4 * kMostTerms) return std::nullopt;
    if (node.is_const()) {
      int64_t value = 0;
      if (__builtin_mul_overflow(node.const_int(), scale, &value) ||
          __builtin_add_overflow(out.constant, value, &out.constant)) {
        return std::nullopt;
      }
    } else if (node.is(Op::ADD)) {
      todo.push_back({node.src(1), scale});
      todo.push_back({node.src(0), scale});
    } else if (node.is(Op::MUL) && node.src(1).is_const()) {
      int64_t product = 0;
      if (__builtin_mul_overflow(scale, node.src(1).const_int(), &product)) return std::nullopt;
      todo.push_back({node.src(0), product});
    } else {
      out.terms.push_back({node, scale});
      if (out.terms.size() > kMostTerms) return std::nullopt;
    }
  }
  if (!normalise(out.terms)) return std::nullopt;
  return out;
}

UOp build_sum(Arena& arena, const LinearSum& sum) {
  auto constant = [&](int64_t v) {
    return arena.make(Op::CONST, sum.dtype, {}, Arg::bits(uint64_t(v)));
  };
  UOp out;
  for (const Term& t : sum.terms) {
    const UOp term = t.coefficient == 1
                         ? t.base
                         : arena.make(Op::MUL, sum.dtype, {t.base, constant(t.coefficient)});
    out = out ? arena.make(Op::ADD, sum.dtype, {out, term}) : term;
  }
  if (!out) return constant(sum.constant);
  return sum.constant == 0 ? out : arena.make(Op::ADD, sum.dtype, {out, constant(sum.constant)});
}

Interval bounds(const LinearSum& sum) {
  __extension__ using Wide = __int128;
  Wide lo = sum.constant, hi = sum.constant;
  bool no_lo = false, no_hi = false;
  for (const Term& t : sum.terms) {
    Interval i = bounds(t.base);
    if (t.coefficient < 0) {
      // the interval of -base, "no bound" mirrored
      i = {i.hi == Interval::kHigh ? Interval::kLow : -i.hi,
           i.lo == Interval::kLow ? Interval::kHigh : -i.lo};
    }
    const Wide scale = t.coefficient < 0 ? -Wide(t.coefficient) : Wide(t.coefficient);
    no_lo |= i.lo == Interval::kLow;
    no_hi |= i.hi == Interval::kHigh;
    if (!no_lo) lo += i.lo * scale;
    if (!no_hi) hi += i.hi * scale;
    no_lo |= lo <= Interval::kLow;
    no_hi |= hi >= Interval::kHigh;
  }
  // An end that left 64 bits stays "no bound", even if a later term would bring it back.
  return {no_lo                   ? Interval::kLow
          : lo >= Interval::kHigh ? Interval::kHigh
                                  : int64_t(lo),
          no_hi                  ? Interval::kHigh
          : hi <= Interval::kLow ? Interval::kLow
                                 : int64_t(hi)};
}

std::optional<LinearSum> add_scaled(const LinearSum& a, const LinearSum& b, int64_t scale) {
  LinearSum out = a;
  int64_t scaled = 0;
  if (__builtin_mul_overflow(b.constant, scale, &scaled) ||
      __builtin_add_overflow(out.constant, scaled, &out.constant)) {
    return std::nullopt;
  }
  for (const Term& t : b.terms) {
    if (__builtin_mul_overflow(t.coefficient, scale, &scaled)) return std::nullopt;
    out.terms.push_back({t.base, scaled});
  }
  if (!normalise(out.terms)) return std::nullopt;
  return out;
}

}  // namespace weft
