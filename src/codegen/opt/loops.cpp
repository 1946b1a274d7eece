// Looks at every access in the scope of a range.
#include "codegen/opt/loops.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/reads.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/linear.h"

namespace weft {
namespace {

bool is_memory_store(UOp n) { return n.is(Op::STORE) && !is_register(n.src(0)); }

// coefficient * factors, none of which is a constant.
struct Monomial {
  int64_t coefficient = 1;
  std::vector<UOp> factors{};  // by id

  bool operator==(const Monomial&) const = default;
};

Monomial monomial_of(UOp n) {
  Monomial out;
  std::vector<UOp> todo{n};
  while (!todo.empty()) {
    const UOp at = todo.back();
    todo.pop_back();
    if (at.is(Op::MUL)) {
      todo.insert(todo.end(), at.srcs().begin(), at.srcs().end());
    } else if (!at.is_const()) {
      out.factors.push_back(at);
    } else if (__builtin_mul_overflow(out.coefficient, at.const_int(), &out.coefficient)) {
      out.coefficient = 0;
    }
  }
  std::ranges::sort(out.factors, {}, &UOp::id);
  return out;
}

Monomial product(Monomial a, const Monomial& b) {
  if (__builtin_mul_overflow(a.coefficient, b.coefficient, &a.coefficient)) a.coefficient = 0;
  a.factors.insert(a.factors.end(), b.factors.begin(), b.factors.end());
  std::ranges::sort(a.factors, {}, &UOp::id);
  return a;
}

// A RANGE times its stride.
struct Step {
  UOp range;
  Monomial stride;
};

// Terms that memory holds take steps of a multiple of `grid`: what the other terms reach below
// that tells places apart whatever memory holds. 0: there are no such terms.
struct Terms {
  int64_t grid = 0;
  std::vector<Term> others{};
};
Terms apart_from_memory(const LinearSum& sum) {
  Terms out;
  for (const Term& t : sum.terms) {
    if (reads_memory(t.base) && !ranges_of(t.base).empty()) {
      out.grid = std::gcd(out.grid, t.coefficient);
    } else {
      out.others.push_back(t);
    }
  }
  return out;
}

// Whether different places of the ranges give different indices: in the order of their strides,
// each steps over all that the ones before it reach.
bool is_injective(UOp index, UOp range) {
  const std::optional<LinearSum> sum = linear_sum(index);
  if (!sum) return false;
  const Terms terms = apart_from_memory(*sum);
  std::vector<Step> steps;
  for (const Term& t : terms.others) {
    // A multiple of the grid is nothing on it.
    if (terms.grid != 0 && t.coefficient % terms.grid == 0) continue;
    Step step{{}, monomial_of(t.base)};
    step.stride.coefficient *= t.coefficient < 0 ? -t.coefficient : t.coefficient;
    for (UOp f : step.stride.factors) {
      if (ranges_of(f).empty()) continue;
      if (!f.is(Op::RANGE) || step.range) return false;
      step.range = f;
    }
    if (!step.range) continue;  // the same in all iterations
    std::erase(step.stride.factors, step.range);
    steps.push_back(std::move(step));
  }
  if (std::ranges::none_of(steps, [&](const Step& s) { return s.range == range; })) return false;
  std::ranges::sort(steps, [](const Step& a, const Step& b) {
    if (a.stride.factors.size() != b.stride.factors.size()) {
      return a.stride.factors.size() < b.stride.factors.size();
    }
    return a.stride.coefficient < b.stride.coefficient;
  });
  Monomial reach;
  for (const Step& s : steps) {
    if (bounds(s.range).hi <= 0) continue;
    const bool steps_over = (reach == Monomial{} || s.stride.factors == reach.factors) &&
                            s.stride.coefficient >= reach.coefficient && reach.coefficient > 0;
    if (!steps_over) return false;
    reach = product(s.stride, monomial_of(s.range.src(0)));
  }
  if (terms.grid != 0 && (!reach.factors.empty() || reach.coefficient > terms.grid)) return false;
  return reach.coefficient > 0;
}

// Whether iteration r of the range touches elements r * stride to r * stride + stride - 1 alone,
// and which stride that is: 0 where it is not so.
int64_t block_stride(UOp index, UOp range) {
  const std::optional<LinearSum> sum = linear_sum(index);
  if (!sum) return 0;
  int64_t stride = 0;
  Interval rest{sum->constant, sum->constant};
  for (const Term& t : sum->terms) {
    if (t.base == range) {
      stride = t.coefficient;
      continue;
    }
    const Interval own = bounds(t.base);
    if (own.lo == Interval::kLow || own.hi == Interval::kHigh) return 0;
    const int64_t low = t.coefficient < 0 ? own.hi : own.lo,
                  high = t.coefficient < 0 ? own.lo : own.hi;
    int64_t first = 0, last = 0;
    if (__builtin_mul_overflow(t.coefficient, low, &first) ||
        __builtin_mul_overflow(t.coefficient, high, &last) ||
        __builtin_add_overflow(rest.lo, first, &rest.lo) ||
        __builtin_add_overflow(rest.hi, last, &rest.hi)) {
      return 0;
    }
  }
  return rest.lo >= 0 && rest.hi < stride ? stride : 0;
}

// Whether all accesses inside of the range to a memory stay in the block of their iteration.
bool has_own_blocks(const std::vector<UOp>& inside, UOp memory, UOp range) {
  int64_t stride = 0;
  return std::ranges::all_of(inside, [&](UOp n) {
    if (!n.is(Op::LOAD) && !is_memory_store(n)) return true;
    if (place_of(n.src(0)).base != memory) return true;
    const int64_t own = block_stride(index_of(n), range);
    if (stride == 0) stride = own;
    return own > 0 && own == stride;
  });
}

bool is_parallel(UOp sink, UOp range) {
  if (ranges_of(range).size() > 1) return false;  // its size changes with another loop
  const std::vector<UOp> closers = closers_of(sink, range);
  if (closers.empty() || !std::ranges::all_of(closers, [](UOp n) { return n.is(Op::END); })) {
    return false;
  }
  std::unordered_set<UOp> written;
  std::vector<UOp> inside;
  for (UOp n : toposort(sink)) {
    // Registers and local memory live in one iteration, and so do those that are opened in it; one
    // that comes from outside goes on to the next.
    const bool is_reg = n.is(Op::AFTER) && is_register(n) && n.src(0).is(Op::DEFINE_REG);
    const bool is_local =
        n.is(Op::AFTER) && n.dtype().is_pointer() && place_of(n).base.is(Op::DEFINE_LOCAL);
    if (is_reg || is_local) {
      const auto waits = n.srcs().subspan(1);
      const bool is_carried =
          std::ranges::find(waits, range) != waits.end() && std::ranges::any_of(waits, [&](UOp s) {
            return is_effect(s.op()) && !is_in_scope(range, s);
          });
      // What the last iteration leaves in it is read behind the loop.
      const bool is_left = std::ranges::any_of(waits, [&](UOp s) {
        return s.is(Op::END) && std::ranges::find(closers, s) != closers.end();
      });
      if (is_carried || (is_left && is_reg)) return false;
    }
    if (is_in_scope(range, n)) inside.push_back(n);
  }
  const auto is_one_place = [&](UOp memory, UOp index) {
    return is_injective(index, range) && std::ranges::all_of(inside, [&](UOp n) {
             const bool is_access = n.is(Op::LOAD) || is_memory_store(n);
             return !is_access || place_of(n.src(0)).base != memory || index_of(n) == index;
           });
  };
  for (UOp n : inside) {
    if (!is_memory_store(n) || place_of(n.src(0)).base.is(Op::DEFINE_LOCAL)) continue;
    const UOp memory = place_of(n.src(0)).base;
    if (!written.insert(memory).second) continue;
    if (!is_one_place(memory, index_of(n)) && !has_own_blocks(inside, memory, range)) return false;
  }
  return true;
}

}  // namespace

UOp range_by_id(UOp sink, int64_t id) {
  for (UOp n : toposort(sink)) {
    if (n.is(Op::RANGE) && n.range_id() == id) return n;
  }
  return {};
}

int64_t free_range_id(UOp sink) {
  int64_t most = -1;
  for (UOp n : toposort(sink)) {
    if (n.is(Op::RANGE)) most = std::max(most, n.range_id());
  }
  return most + 1;
}

std::vector<UOp> closers_of(UOp sink, UOp range) {
  std::vector<UOp> out;
  for (UOp n : toposort(sink)) {
    if (!n.is(Op::END) && !n.is(Op::REDUCE)) continue;
    const auto listed = n.srcs().subspan(1);
    if (std::ranges::find(listed, range) != listed.end()) out.push_back(n);
  }
  return out;
}

UOp mark_parallel_loops(UOp sink) {
  std::vector<std::pair<UOp, UOp>> marked;
  for (UOp n : toposort(sink)) {
    if (!n.is(Op::RANGE) || n.axis() != AxisType::kLoop || !is_parallel(sink, n)) continue;
    marked.emplace_back(n, sink.arena().make(Op::RANGE, n.dtype(), n.srcs(),
                                             Arg::range(n.range_id(), AxisType::kGlobal)));
  }
  return marked.empty() ? sink : substitute(sink, marked);
}

bool runs_in_order(UOp sink) {
  const auto writes_memory = [](UOp effect) {
    while (effect.is(Op::END)) effect = effect.src(0);
    return is_memory_store(effect) && place_of(effect.src(0)).base.is(Op::DEFINE_GLOBAL);
  };
  const std::vector<UOp> order = toposort(sink);
  return std::ranges::any_of(order, [&](UOp n) {
    return n.is(Op::AFTER) && n.dtype().is_pointer() && !is_register(n) &&
           place_of(n).base.is(Op::DEFINE_GLOBAL) &&
           std::ranges::any_of(n.srcs().subspan(1), writes_memory);
  });
}

UOp index_of(UOp access) {
  UOp pointer = access.src(0);
  while (!pointer.is(Op::INDEX)) pointer = pointer.src(0);
  return pointer.src(1);
}

std::optional<int64_t> step_of(UOp access, UOp range) {
  const UOp index = index_of(access);
  if (!is_in_scope(range, index)) return 0;
  const std::optional<LinearSum> sum = linear_sum(index);
  if (!sum) return {};
  int64_t step = 0;
  for (const Term& t : sum->terms) {
    if (t.base == range) {
      step = t.coefficient;
    } else if (is_in_scope(range, t.base)) {
      return {};
    }
  }
  return step;
}

}  // namespace weft
