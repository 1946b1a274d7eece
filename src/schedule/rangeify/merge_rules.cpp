// The corrections, each with its conditions. With e(a + b) = e(a) e(b):
//   sum_j e(x_j - m') v_j = e(m - m') sum_j e(x_j - m) v_j
//   sum_j (x_j - a)^2 = sum_j (x_j - b)^2 + n (b - a)^2      where b is the mean of the x_j
// Infinities and NaN: see docs/schedule.md.
#include "schedule/rangeify/merge_rules.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/linear.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What an elementwise expression of one value is where that is x; empty where it depends on more.
std::optional<double> value_at(UOp expression, UOp of, double x) {
  std::unordered_map<UOp, uint64_t> known{{of, bits_of_double(of.dtype(), x)}};
  const auto visit = [&](UOp n) {
    if (n.is_const()) {
      known.emplace(n, n.bits());
      return;
    }
    std::vector<uint64_t> operands;
    for (UOp s : n.srcs()) {
      const auto at = known.find(s);
      if (at == known.end()) break;
      operands.push_back(at->second);
    }
    const bool is_known = is_elementwise(n.op()) && operands.size() == n.src_count();
    if (!is_known) return;
    const DType type = n.src(n.is(Op::WHERE) ? 1 : 0).dtype();
    if (const auto bits = evaluate_scalar(n.op(), type, n.dtype(), operands))
      known.emplace(n, *bits);
  };
  NodeMap seen(expression.arena());
  seen.put_number(of, 1);
  visit_missing(
      expression, [&](UOp n) { return seen.has(n); },
      [&](UOp n) {
        seen.put_number(n, 1);
        visit(n);
      });
  const auto at = known.find(expression);
  if (at == known.end()) return {};
  return double_of_bits(expression.dtype(), at->second);
}

// x itself for every finite x.
bool is_itself_if_finite(UOp expression, UOp of) {
  constexpr double samples[] = {0.0, 1.5, -2.25, 1e30, -1e30, 1e-30};
  return std::ranges::all_of(samples, [&](double x) {
    const double rounded = double_of_bits(of.dtype(), bits_of_double(of.dtype(), x));
    return value_at(expression, of, x) == rounded;
  });
}

bool is_below(UOp n, UOp root) {
  if (n == root) return true;
  if (n.id() > root.id()) return false;
  const std::vector<UOp> order = toposort(root);
  return std::ranges::find(order, n) != order.end();
}

// a - b, written as that or as a + -b.
std::optional<std::pair<UOp, UOp>> as_difference(UOp n) {
  if (n.is(Op::SUB)) return std::pair(n.src(0), n.src(1));
  if (!n.is(Op::ADD)) return {};
  for (const size_t i : {0, 1}) {
    if (n.src(i).is(Op::NEG)) return std::pair(n.src(1 - i), n.src(i).src(0));
  }
  return {};
}

// An integer that is computed from indices that are far from wrapping, as a sum of indices.
std::optional<LinearSum> sum_of_indices(UOp root) {
  constexpr int64_t k_most = int64_t(1) << 28;
  LinearSum out{dtypes::index, {}, 0};
  std::vector<std::pair<UOp, int64_t>> todo{{root, 1}};
  for (size_t taken = 0; !todo.empty(); taken++) {
    const auto [n, scale] = todo.back();
    todo.pop_back();
    const Interval own = bounds(n);
    if (taken > 32 || own.lo < -k_most || own.hi > k_most) return {};
    if (n.dtype().is_index() || n.is_const()) {
      const UOp index = n.is_const() ? index_const(n.arena(), n.const_int()) : n;
      const std::optional<LinearSum> sum = linear_sum(index);
      const auto both = sum ? add_scaled(out, *sum, scale) : std::nullopt;
      if (!both) return {};
      out = *both;
    } else if (n.is(Op::CAST) && (n.src(0).dtype().is_index() || n.src(0).dtype().is_int())) {
      todo.emplace_back(n.src(0), scale);
    } else if (n.is(Op::ADD) || n.is(Op::SUB)) {
      todo.emplace_back(n.src(0), scale);
      todo.emplace_back(n.src(1), n.is(Op::SUB) ? -scale : scale);
    } else if (n.is(Op::NEG)) {
      todo.emplace_back(n.src(0), -scale);
    } else {
      return {};
    }
  }
  return out;
}

// The end of the places at which a < b can hold, or not hold.
UOp end_of_less(UOp a, UOp b, bool holds, UOp range) {
  const bool is_integer = a.dtype().is_index() || a.dtype().is_int();
  const auto x = is_integer ? sum_of_indices(a) : std::nullopt,
             y = is_integer ? sum_of_indices(b) : std::nullopt;
  if (!x || !y) return {};
  // x - y < 0, or y - x - 1 < 0
  std::optional<LinearSum> sum = holds ? add_scaled(*x, *y, -1) : add_scaled(*y, *x, -1);
  if (!sum) return {};
  if (!holds) sum->constant--;
  const auto own = std::ranges::find(sum->terms, range, &Term::base);
  if (own == sum->terms.end() || own->coefficient != 1) return {};
  sum->terms.erase(own);  // range + rest < 0
  for (Term& t : sum->terms) {
    t.coefficient = -t.coefficient;
    if (t.coefficient < 1 || !t.base.is(Op::RANGE)) return {};
  }
  sum->constant = -sum->constant;
  return build_sum(range.arena(), *sum);
}

UOp end_where(UOp condition, bool holds, UOp range) {
  std::vector<std::pair<UOp, bool>> todo{{simplify(condition), holds}};  // all of them
  while (!todo.empty()) {
    const auto [n, is_so] = todo.back();
    todo.pop_back();
    if (n.is(Op::NOT)) {
      todo.emplace_back(n.src(0), !is_so);
    } else if (n.is(is_so ? Op::AND : Op::OR)) {
      for (UOp s : n.srcs()) todo.emplace_back(s, is_so);
    } else if (n.is(Op::CMPLT)) {
      if (const UOp end = end_of_less(n.src(0), n.src(1), is_so, range)) return end;
    }
  }
  return {};
}

bool is_lowest(UOp n) {
  return n.is_const() && n.dtype().is_float() && double_of_bits(n.dtype(), n.bits()) == -kInfinity;
}

// Of a value: where all that follows is -inf, in one of the terms of a sum.
UOp end_of(UOp value, UOp range) {
  std::vector<UOp> todo{value};
  while (!todo.empty()) {
    const UOp n = todo.back();
    todo.pop_back();
    UOp end;
    if (n.is(Op::WHERE) && is_lowest(n.src(2))) end = end_where(n.src(0), true, range);
    if (n.is(Op::WHERE) && is_lowest(n.src(1))) end = end_where(n.src(0), false, range);
    if (end) return end;
    if (n.is(Op::ADD)) todo.insert(todo.end(), n.srcs().begin(), n.srcs().end());
  }
  return {};
}

class Matcher {
 public:
  explicit Matcher(UOp range) : range_(range) {}

  bool take(UOp reduce, UOp body) {
    MergedReduction next{.reduce = reduce, .body = body};
    if (depends(body)) {
      if (!as_exponentials(next) && !as_squared_deviations(next)) return false;
    }
    out_.push_back(std::move(next));
    return true;
  }

  std::vector<MergedReduction> result() { return std::move(out_); }

 private:
  bool depends(UOp n) const {
    return std::ranges::any_of(out_,
                               [&](const MergedReduction& r) { return is_below(r.reduce, n); });
  }
  bool is_along(UOp n) const { return is_in_scope(range_, n); }

  // sum_j x_j / l = (sum_j x_j) / l: factors that the range does not change leave the sum. They
  // pass casts between floats, too.
  UOp without_scales(UOp n, std::vector<std::pair<Op, UOp>>& scales) const {
    std::vector<UOp> casts;
    for (bool is_done = false; !is_done;) {
      is_done = true;
      const auto leaves = [&](UOp factor) { return !is_along(factor) && depends(factor); };
      if ((n.is(Op::MUL) || n.is(Op::FDIV)) && leaves(n.src(1))) {
        scales.emplace_back(n.op(), n.src(1));
        n = n.src(0);
        is_done = false;
      } else if (n.is(Op::MUL) && leaves(n.src(0))) {
        scales.emplace_back(n.op(), n.src(0));
        n = n.src(1);
        is_done = false;
      } else if (n.is(Op::CAST) && n.dtype().is_float() && n.src(0).dtype().is_float() &&
                 depends(n)) {
        casts.push_back(n);
        n = n.src(0);
        is_done = false;
      }
    }
    if (n.is(Op::MUL)) {
      const UOp a = without_scales(n.src(0), scales), b = without_scales(n.src(1), scales);
      const UOp both[] = {a, b};
      n = n.arena().with_srcs(n, both);
    }
    for (size_t i = casts.size(); i-- > 0;) n = n.arena().with_srcs(casts[i], {&n, 1});
    return n;
  }

  // The factor of a product that depends on other reductions, through casts; none if two do.
  UOp dependent_factor(UOp n) const {
    while (true) {
      if (n.is(Op::CAST) && n.dtype().is_float() && n.src(0).dtype().is_float()) {
        n = n.src(0);
      } else if (n.is(Op::MUL)) {
        const bool a = depends(n.src(0)), b = depends(n.src(1));
        if (a == b) return {};
        n = n.src(a ? 0 : 1);
      } else {
        return n;
      }
    }
  }

  bool as_exponentials(MergedReduction& r) const {
    if (r.reduce.arg_op() != Op::ADD || !r.reduce.dtype().is_float()) return false;
    std::vector<std::pair<Op, UOp>> scales;
    const UOp body = without_scales(r.body, scales), factor = dependent_factor(body);
    if (!factor || !(factor.is(Op::EXP) || factor.is(Op::EXP2))) return false;
    const auto difference = as_difference(factor.src(0));
    if (!difference) return false;
    const auto [x, base] = *difference;
    if (!is_along(x) || is_along(base) || depends(x)) return false;
    for (size_t i = 0; i < out_.size(); i++) {
      const MergedReduction& most = out_[i];
      if (most.reduce.arg_op() != Op::MAX || most.correction != Correction::kNone) continue;
      if (most.body != x || !is_itself_if_finite(base, most.reduce)) continue;
      const auto at_least = value_at(base, most.reduce, -kInfinity),
                 at_most = value_at(base, most.reduce, kInfinity);
      if (!at_least || !at_most) continue;
      // Where the base of an infinite maximum is finite, sums of exponentials alone are infinite
      // both ways.
      if (*at_most != kInfinity && body != factor) continue;
      r.body = body, r.scales = std::move(scales), r.on = i, r.base = base;
      r.correction = Correction::kExponentials;
      r.is_nan_when_empty = !std::isfinite(*at_least);
      return true;
    }
    return false;
  }

  // (x - sum_j x_j / n)^2
  bool as_squared_deviations(MergedReduction& r) const {
    if (r.reduce.arg_op() != Op::ADD || !r.reduce.dtype().is_float()) return false;
    if (!r.body.is(Op::MUL) || r.body.src(0) != r.body.src(1)) return false;
    const auto difference = as_difference(r.body.src(0));
    if (!difference) return false;
    const auto [x, base] = *difference;
    for (size_t i = 0; i < out_.size(); i++) {
      const MergedReduction& sum = out_[i];
      const bool is_sum = sum.reduce.arg_op() == Op::ADD && sum.body == x &&
                          sum.correction == Correction::kNone && x.dtype() == r.reduce.dtype();
      if (!is_sum) continue;
      const std::optional<double> one = value_at(base, sum.reduce, 1);
      const double n = double(bounds(range_).hi + 1);
      if (!one || std::abs(*one * n - 1) > 1e-6) continue;
      r.on = i, r.base = base, r.correction = Correction::kSquaredDeviations;
      return true;
    }
    return false;
  }

  UOp range_;
  std::vector<MergedReduction> out_;
};

}  // namespace

Op exponential_of(const MergedReduction& r) {
  for (UOp n : toposort(r.body)) {
    if ((n.is(Op::EXP) || n.is(Op::EXP2)) && is_below(r.base, n)) return n.op();
  }
  return Op::EXP;
}

UOp end_of_places(std::span<const MergedReduction> reductions, UOp range) {
  UOp end;
  for (const MergedReduction& r : reductions) {
    if (r.correction == Correction::kExponentials) continue;
    const bool is_maximum = r.correction == Correction::kNone && r.reduce.arg_op() == Op::MAX;
    if (!is_maximum || end) return {};  // one, which all others are below
    end = end_of(r.body, range);
    if (!end) return {};
  }
  return end;
}

std::string_view name_of(Correction correction) {
  switch (correction) {
    case Correction::kNone: return "none";
    case Correction::kExponentials: return "exponentials";
    case Correction::kSquaredDeviations: return "squared-deviations";
  }
  return "";
}

std::vector<MergedReduction> merged_reductions(const std::vector<std::pair<UOp, UOp>>& reduces,
                                               UOp range) {
  Matcher matcher(range);
  for (const auto& [reduce, body] : reduces) matcher.take(reduce, body);
  return matcher.result();
}

}  // namespace weft
