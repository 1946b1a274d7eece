// Numbers with equal values in every program are one; those that change least come first, and
// others are tried as formulas of them.
#include "schedule/number_rules.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "schedule/skeleton.h"

namespace weft {
namespace {

using Kind = Number::Kind;
using Values = std::vector<int64_t>;  // of one number, program after program

constexpr int64_t kLeastReach = 4096, kReach = 16;  // values past those seen that rules allow
constexpr int64_t kLargest = int64_t(1) << 40;

// Numbers that have the same values.
struct Like {
  Values values;
  std::vector<size_t> numbers;
  int64_t least = INT64_MIN;  // that the kinds of them allow

  uint64_t change() const {
    const auto [lo, hi] = std::ranges::minmax(values);
    return uint64_t(hi) - uint64_t(lo);
  }
};

std::vector<Like> group(std::span<const std::vector<Number>> programs,
                        std::vector<NumberFormula>& formulas) {
  std::map<Values, Like> found;
  for (size_t i = 0; i < formulas.size(); i++) {
    Values values;
    for (const std::vector<Number>& p : programs) values.push_back(p[i].value);
    if (std::ranges::all_of(values, [&](int64_t v) { return v == values[0]; })) {
      formulas[i].constant = values[0];
      continue;
    }
    Like& like = found[values];
    like.values = std::move(values);
    like.numbers.push_back(i);
    // Size 0 is another skeleton. So is 1, but what is made for sizes from 2 on is right for it.
    constexpr int64_t k_least[] = {1, 0, INT64_MIN};
    like.least = std::max(like.least, k_least[size_t(programs[0][i].kind)]);
  }
  std::vector<Like> likes;
  likes.reserve(found.size());
  for (auto& [values, like] : found) likes.push_back(std::move(like));
  std::ranges::stable_sort(likes, {}, [](const Like& l) { return l.change(); });
  return likes;
}

class Finder {
 public:
  Finder(std::span<const std::vector<Number>> programs, size_t most)
      : programs_(programs), most_(most) {
    rules_.formulas.resize(programs[0].size());
  }

  std::optional<NumberRules> run() {
    for (const Like& like : group(programs_, rules_.formulas)) {
      std::optional<NumberFormula> f = formula_of(like.values);
      if (!f || !keep_least(*f, like.least)) {
        if (rules_.variables.size() == most_) return {};
        f = new_variable(like);
        if (!f) return {};
      }
      for (const size_t i : like.numbers) rules_.formulas[i] = *f;
    }
    for (const NumberRules::Variable& v : rules_.variables) {
      if (v.lo >= v.hi) return {};
    }
    return std::move(rules_);
  }

 private:
  std::optional<NumberFormula> new_variable(const Like& like) {
    const auto [least, most] = std::ranges::minmax(like.values);
    if (least < -kLargest || most > kLargest) return {};
    const int64_t reach = std::max(
        kLeastReach, kReach * int64_t(std::bit_ceil(uint64_t(std::max<int64_t>(most, 1)))));
    rules_.variables.push_back(
        {like.least == INT64_MIN ? -reach : like.least, reach, like.numbers[0]});
    values_.push_back(like.values);
    return NumberFormula{0, 1, uint32_t(values_.size() - 1)};
  }

  std::optional<NumberFormula> formula_of(const Values& v) const {
    for (uint32_t a = 0; a < values_.size(); a++) {
      if (const auto f = affine(v, a); f && f->factor == 1) return f;
    }
    for (uint32_t a = 0; a < values_.size(); a++) {
      if (const auto f = affine(v, a); f && f->constant == 0) return f;
    }
    for (uint32_t a = 0; a < values_.size(); a++) {
      for (uint32_t b = a; b < values_.size(); b++) {
        if (is_product(v, a, b)) return NumberFormula{0, 1, a, b};
      }
    }
    return {};
  }

  // v = factor*a + constant
  std::optional<NumberFormula> affine(const Values& v, uint32_t a) const {
    const Values& x = values_[a];
    size_t other = 1;
    while (other < x.size() && x[other] == x[0]) other++;
    const int64_t dx = x[other] - x[0], dv = v[other] - v[0];
    if (dv % dx != 0 || dv / dx < 1) return {};
    int64_t scaled = 0, constant = 0;
    if (__builtin_mul_overflow(dv / dx, x[0], &scaled) ||
        __builtin_sub_overflow(v[0], scaled, &constant)) {
      return {};
    }
    const NumberFormula f{constant, dv / dx, a};
    const NumberFormula of_one{constant, dv / dx, 0};
    for (size_t i = 0; i < v.size(); i++) {
      if (of_one.value({&x[i], 1}) != v[i]) return {};
    }
    return f;
  }

  bool is_product(const Values& v, uint32_t a, uint32_t b) const {
    for (size_t i = 0; i < v.size(); i++) {
      int64_t product = 0;
      if (__builtin_mul_overflow(values_[a][i], values_[b][i], &product) || product != v[i]) {
        return false;
      }
    }
    return true;
  }

  // Raises the least value of a variable so that f is not less than `least`.
  bool keep_least(const NumberFormula& f, int64_t least) {
    if (least == INT64_MIN) return true;
    NumberRules::Variable& a = rules_.variables[f.a];
    if (f.b != NumberFormula::kNone) return a.lo >= 1 && rules_.variables[f.b].lo >= 1;
    // factor*a + constant >= least
    const int64_t need = least - f.constant;
    const int64_t lo = need <= 0 ? need / f.factor : (need + f.factor - 1) / f.factor;
    const bool is_allowed = std::ranges::all_of(values_[f.a], [&](int64_t v) { return v >= lo; });
    if (is_allowed) a.lo = std::max(a.lo, lo);
    return is_allowed;
  }

  std::span<const std::vector<Number>> programs_;
  size_t most_;
  std::vector<Values> values_;  // of variables
  NumberRules rules_;
};

}  // namespace

std::optional<int64_t> NumberFormula::value(std::span<const int64_t> variables) const {
  if (a == kNone) return constant;
  int64_t v = 0;
  const int64_t second = b == kNone ? 1 : variables[b];
  if (__builtin_mul_overflow(variables[a], second, &v) || __builtin_mul_overflow(v, factor, &v) ||
      __builtin_add_overflow(v, constant, &v)) {
    return {};
  }
  return v;
}

Dim NumberFormula::in(Arena& arena, std::span<const UOp> variables) const {
  if (a == kNone) return constant;
  Dim product = variables[a];
  if (b != kNone) product = mul(arena, product, variables[b]);
  return add(arena, mul(arena, product, factor), constant);
}

std::optional<std::vector<int64_t>> NumberRules::values(std::span<const Number> numbers) const {
  if (numbers.size() != formulas.size()) return {};
  std::vector<int64_t> found;
  found.reserve(variables.size());
  for (const Variable& v : variables) {
    const int64_t value = numbers[v.number].value;
    if (value < v.lo || value > v.hi) return {};
    found.push_back(value);
  }
  for (size_t i = 0; i < numbers.size(); i++) {
    if (formulas[i].value(found) != numbers[i].value) return {};
  }
  return found;
}

std::optional<NumberRules> find_rules(std::span<const std::vector<Number>> programs, size_t most) {
  return Finder(programs, most).run();
}

}  // namespace weft
