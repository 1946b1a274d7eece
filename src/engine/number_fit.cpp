// Elimination in the integers modulo a prime: what is found there is tried on the numbers.
#include "engine/number_fit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace weft {
namespace {

__extension__ using Wide = __int128;
__extension__ using Word = unsigned __int128;

constexpr uint64_t kPrime = (uint64_t(1) << 61) - 1;

uint64_t multiplied(uint64_t a, uint64_t b) { return uint64_t(Word(a) * b % kPrime); }
uint64_t subtracted(uint64_t a, uint64_t b) { return a >= b ? a - b : a + kPrime - b; }
uint64_t residue(int64_t v) {
  const int64_t rest = v % int64_t(kPrime);
  return uint64_t(rest < 0 ? rest + int64_t(kPrime) : rest);
}
uint64_t inverse(uint64_t a) {
  uint64_t result = 1;
  for (uint64_t power = kPrime - 2; power > 0; power /= 2) {
    if (power % 2 == 1) result = multiplied(result, a);
    a = multiplied(a, a);
  }
  return result;
}

int64_t factor_of(uint32_t variable, std::span<const int64_t> values) {
  return variable == Polynomial::kOne ? 1 : values[variable];
}

using Rows = std::vector<std::vector<uint64_t>>;

// Makes the first `columns` columns those of the identity; what they need of rows comes first.
// False where they are not independent.
bool reduce(Rows& rows, size_t columns) {
  for (size_t c = 0; c < columns; c++) {
    const auto at = std::find_if(rows.begin() + ptrdiff_t(std::min(c, rows.size())), rows.end(),
                                 [&](const auto& row) { return row[c] != 0; });
    if (at == rows.end()) return false;
    std::iter_swap(rows.begin() + ptrdiff_t(c), at);
    const uint64_t by = inverse(rows[c][c]);
    for (uint64_t& v : rows[c]) v = multiplied(v, by);
    for (size_t r = 0; r < rows.size(); r++) {
      const uint64_t times = rows[r][c];
      if (r == c || times == 0) continue;
      for (size_t i = 0; i < rows[r].size(); i++) {
        rows[r][i] = subtracted(rows[r][i], multiplied(times, rows[c][i]));
      }
    }
  }
  return true;
}

}  // namespace

std::optional<int64_t> Polynomial::value(std::span<const int64_t> variables) const {
  int64_t sum = 0;
  for (const Term& t : terms) {
    int64_t product = 0;
    if (__builtin_mul_overflow(factor_of(t.a, variables), factor_of(t.b, variables), &product) ||
        __builtin_mul_overflow(product, t.factor, &product) ||
        __builtin_add_overflow(sum, product, &sum)) {
      return {};
    }
  }
  return sum;
}

bool Polynomial::is_constant() const {
  return std::all_of(terms.begin(), terms.end(),
                     [](const Term& t) { return t.a == kOne && t.b == kOne; });
}

std::optional<int64_t> Polynomial::least(std::span<const int64_t> lows,
                                         std::span<const int64_t> highs) const {
  Wide sum = 0;
  for (const Term& t : terms) {
    if (t.b != kOne) return {};
    sum += Wide(t.factor) * factor_of(t.a, t.factor > 0 ? lows : highs);
  }
  if (sum < INT64_MIN || sum > INT64_MAX) return {};
  return int64_t(sum);
}

Polynomial Polynomial::minus(const Polynomial& other) const {
  Polynomial result = *this;
  for (const Term& t : other.terms) {
    auto* const same = std::find_if(result.terms.begin(), result.terms.end(),
                                    [&](const Term& o) { return o.a == t.a && o.b == t.b; });
    if (same != result.terms.end()) {
      same->factor -= t.factor;
    } else {
      result.terms.push_back({-t.factor, t.a, t.b});
    }
  }
  return result;
}

NumberFit::NumberFit(std::vector<std::vector<int64_t>> calls) : calls_(std::move(calls)) {
  const size_t variables = calls_.empty() ? 0 : calls_[0].size();
  linear_ = products(false);
  for (uint32_t v = 0; v < variables; v++) {
    free_.push_back(v);
    Products more = products(false);
    Rows rows = more.rows;
    if (reduce(rows, more.terms.size())) {
      linear_ = std::move(more);
      continue;
    }
    free_.pop_back();
    std::vector<int64_t> own;
    own.reserve(calls_.size());
    for (const std::vector<int64_t>& call : calls_) own.push_back(call[v]);
    linear_.is_enough = true;  // all calls agree: other values are another call's
    if (std::optional<Polynomial> p = solve(linear_, own)) {
      const Polynomial self{.terms = {{1, v, Polynomial::kOne}}};
      relations_.push_back(self.minus(*p));
    } else {
      linear_ = {};
      return;  // it follows from others, but by no formula
    }
  }
  linear_.is_enough = calls_.size() > linear_.terms.size();
  square_ = products(true);
  Rows rows = square_.rows;
  square_.is_enough = calls_.size() > square_.terms.size() && reduce(rows, square_.terms.size());
}

NumberFit::Products NumberFit::products(bool with_squares) const {
  Products p;
  p.terms.push_back({1, Polynomial::kOne, Polynomial::kOne});
  for (const uint32_t a : free_) p.terms.push_back({1, a, Polynomial::kOne});
  for (size_t i = 0; with_squares && i < free_.size(); i++) {
    for (size_t j = i; j < free_.size(); j++) p.terms.push_back({1, free_[i], free_[j]});
  }
  for (const std::vector<int64_t>& call : calls_) {
    std::vector<uint64_t>& row = p.rows.emplace_back();
    for (const Polynomial::Term& t : p.terms) {
      row.push_back(multiplied(residue(factor_of(t.a, call)), residue(factor_of(t.b, call))));
    }
  }
  return p;
}

std::optional<Polynomial> NumberFit::solve(const Products& products,
                                           std::span<const int64_t> numbers) const {
  if (!products.is_enough) return {};
  Rows rows = products.rows;
  for (size_t i = 0; i < rows.size(); i++) rows[i].push_back(residue(numbers[i]));
  if (!reduce(rows, products.terms.size())) return {};
  Polynomial p;
  for (size_t i = 0; i < products.terms.size(); i++) {
    const uint64_t solution = rows[i].back();
    if (solution == 0) continue;
    Polynomial::Term term = products.terms[i];
    term.factor = solution > kPrime / 2 ? -int64_t(kPrime - solution) : int64_t(solution);
    p.terms.push_back(term);
  }
  for (size_t i = 0; i < calls_.size(); i++) {
    if (p.value(calls_[i]) != numbers[i]) return {};
  }
  return p;
}

std::optional<Polynomial> NumberFit::formula(std::span<const int64_t> numbers) const {
  if (std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == numbers[0]; })) {
    Polynomial constant;
    constant.terms.push_back({numbers[0], Polynomial::kOne, Polynomial::kOne});
    return constant;
  }
  if (std::optional<Polynomial> p = solve(linear_, numbers)) return p;
  return solve(square_, numbers);
}

}  // namespace weft
