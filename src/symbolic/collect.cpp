// Sums and products in one form: terms in canonical order, equal ones merged, the constant last.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "symbolic/linear.h"
#include "symbolic/tables.h"

namespace weft {
namespace {
using namespace names;

// ------------------------------------------------------------------------------------ recombining
// a*(y % d) + a*d*(y // d)        == a*y
// a*(y % d) + a*d*((y // d) % e)  == a*(y % (d*e))     for d > 0, e > 0

bool is_by_constant(UOp n, Op op) {
  return n.is(op) && n.src(1).is_const() && n.src(1).const_int() > 0;
}

// Whether n is y // d, also in the form that nested divisions take: (z // k) // d is z // (k*d).
bool is_quotient(UOp n, UOp y, int64_t d) {
  if (!is_by_constant(n, Op::IDIV)) return false;
  if (n.src(0) == y) return n.src(1).const_int() == d;
  int64_t product = 0;
  return is_by_constant(y, Op::IDIV) && n.src(0) == y.src(0) &&
         !__builtin_mul_overflow(y.src(1).const_int(), d, &product) &&
         n.src(1).const_int() == product;
}

// What the terms `remainder` (with base y % d) and `other` add up to, or empty.
std::optional<LinearSum> recombined(Arena& arena, const Term& remainder, const Term& other) {
  const UOp y = remainder.base.src(0), divisor = remainder.base.src(1);
  const DType dtype = y.dtype();
  if (!divisor.is_const()) {  // y // d times d, for a d that is no constant
    if (other.coefficient != remainder.coefficient || !other.base.is(Op::MUL)) return std::nullopt;
    for (const size_t i : {size_t(0), size_t(1)}) {
      const UOp q = other.base.src(i);
      if (q.is(Op::IDIV) && q.src(0) == y && q.src(1) == divisor &&
          other.base.src(1 - i) == divisor) {
        return add_scaled({dtype, {}, 0}, LinearSum{dtype, {{y, 1}}, 0}, remainder.coefficient);
      }
    }
    return std::nullopt;
  }
  const int64_t d = divisor.const_int();
  int64_t scaled = 0;
  if (d <= 0 || __builtin_mul_overflow(remainder.coefficient, d, &scaled) ||
      other.coefficient != scaled) {
    return std::nullopt;
  }
  if (is_quotient(other.base, y, d)) {
    const std::optional<LinearSum> sum = linear_sum(y);
    return sum ? add_scaled({dtype, {}, 0}, *sum, remainder.coefficient) : std::nullopt;
  }
  int64_t modulus = 0;
  if (is_by_constant(other.base, Op::MOD) && is_quotient(other.base.src(0), y, d) &&
      !__builtin_mul_overflow(d, other.base.src(1).const_int(), &modulus)) {
    const UOp wide = arena.make(
        Op::MOD, dtype, {y, arena.make(Op::CONST, dtype, {}, Arg::bits(uint64_t(modulus)))});
    return LinearSum{dtype, {{wide, remainder.coefficient}}, 0};
  }
  return std::nullopt;
}

bool recombine_once(Arena& arena, LinearSum& sum) {
  for (size_t i = 0; i < sum.terms.size(); i++) {
    if (!sum.terms[i].base.is(Op::MOD)) continue;
    for (size_t j = 0; j < sum.terms.size(); j++) {
      if (i == j) continue;
      const std::optional<LinearSum> merged = recombined(arena, sum.terms[i], sum.terms[j]);
      if (!merged) continue;
      LinearSum rest = sum;
      rest.terms.erase(rest.terms.begin() + std::ptrdiff_t(std::max(i, j)));
      rest.terms.erase(rest.terms.begin() + std::ptrdiff_t(std::min(i, j)));
      std::optional<LinearSum> total = add_scaled(rest, *merged, 1);
      if (!total) return false;
      sum = std::move(*total);
      return true;
    }
  }
  return false;
}

UOp canonical_sum(Match& m) {
  std::optional<LinearSum> sum = linear_sum(m.root());
  if (!sum) return UOp();
  while (recombine_once(m.arena(), *sum)) {
  }
  return build_sum(m.arena(), *sum);
}

// ---------------------------------------------------------------------------------------- products

UOp canonical_product(Match& m) {
  constexpr size_t most = 16;
  std::vector<UOp> factors, todo{m.root()};
  while (!todo.empty()) {
    const UOp n = todo.back();
    todo.pop_back();
    if (n.is(Op::MUL) && (n == m.root() || !n.src(1).is_const())) {
      todo.push_back(n.src(1));
      todo.push_back(n.src(0));
    } else {
      factors.push_back(n);
      if (factors.size() > most) return UOp();
    }
  }
  std::sort(factors.begin(), factors.end(), canonical_less);
  UOp product = factors[0];
  for (size_t i = 1; i < factors.size(); i++) {
    product = m.arena().make(Op::MUL, m.root().dtype(), {product, factors[i]});
  }
  return product;
}

// clang-format off
// In every ring of integers, wrapping or not.
constexpr Rule kRing[] = {
    rule("add-add",          (x + c0) + c1,             x + fold(c0 + c1)),
    rule("mul-mul",          (x * c0) * c1,             x * fold(c0 * c1)),
    rule("add-drift",        (x + c0) + nonconst(y),    (x + y) + c0),
    rule("mul-drift",        (x * c0) * nonconst(y),    (x * y) * c0),
    rule("sub-const",        x - c0,                    x + fold(0 - c0)),
    rule("collect-mul",      x * c0 + x * c1,           x * fold(c0 + c1)),
    rule("collect-one",      x + x * c0,                x * fold(c0 + 1)),
    rule("double",           nonconst(x) + x,           x * 2),
    rule("add-sub-cancel",   (x - y) + y,               x),
    rule("and-and",          (x & c0) & c1,             x & fold(c0 & c1)),
    rule("or-or",            (x | c0) | c1,             x | fold(c0 | c1)),
    rule("xor-xor",          (x ^ c0) ^ c1,             x ^ fold(c0 ^ c1)),
};

// Machine integers keep subtraction: it is one instruction.
constexpr Rule kMachineRing[] = {
    rule("add-neg",          x + -y,                    x - y),
};

// Sizes and offsets: subtraction and negation become sums, constants are multiplied out.
constexpr Rule kIndexSums[] = {
    rule("sub-to-add",       x - y,                     x + y * -1),
    rule("neg-to-mul",       -x,                        x * -1),
    rule("distribute",       (x + y) * c0,              x * c0 + y * c0),
    rule("recombine",        (x / c0) * c0 + x % c0,    x),
    rule("recombine-by",     (x / y) * y + x % y,       x),
    rule("canonical-sum",    x + y,                     canonical_sum),
    rule("canonical-product", nonconst(x) * nonconst(y), canonical_product),
};
// clang-format on

constexpr RuleTable kTables[] = {
    {"ring", kIntegers, kRing},
    {"machine ring", kMachineInts, kMachineRing},
    {"index sums", kIndexes, kIndexSums},
};

}  // namespace

std::span<const RuleTable> collect_tables() { return kTables; }

}  // namespace weft
