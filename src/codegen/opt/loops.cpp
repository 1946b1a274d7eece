// Looks at every access in the scope of a range.
#include "codegen/opt/loops.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/linear.h"

namespace weft {
namespace {

UOp index_of(UOp access) {
  UOp pointer = access.src(0);
  while (!pointer.is(Op::INDEX)) pointer = pointer.src(0);
  return pointer.src(1);
}

bool is_memory_store(UOp n) { return n.is(Op::STORE) && !is_register(n.src(0)); }

// Whether different places of the ranges give different indices: sorted by coefficient, each term
// steps over all that the smaller ones reach.
bool is_injective(UOp index, UOp range) {
  const std::optional<LinearSum> sum = linear_sum(index);
  if (!sum) return false;
  std::vector<std::pair<int64_t, int64_t>> terms;  // coefficient, largest value
  bool found = false;
  for (const Term& t : sum->terms) {
    if (!t.base.is(Op::RANGE)) {
      if (is_in_scope(range, t.base)) return false;
      if (ranges_of(t.base).empty()) continue;  // the same in all iterations
      return false;
    }
    found |= t.base == range;
    const int64_t coefficient = t.coefficient < 0 ? -t.coefficient : t.coefficient;
    terms.emplace_back(coefficient, bounds(t.base).hi);
  }
  if (!found) return false;
  std::ranges::sort(terms);
  int64_t reach = 0;
  for (const auto& [coefficient, most] : terms) {
    if (most <= 0) continue;
    if (coefficient <= reach) return false;
    int64_t further = 0;
    if (__builtin_mul_overflow(coefficient, most, &further) ||
        __builtin_add_overflow(reach, further, &reach)) {
      return false;
    }
  }
  return true;
}

bool is_parallel(UOp sink, UOp range) {
  const std::vector<UOp> closers = closers_of(sink, range);
  if (closers.empty() || !std::ranges::all_of(closers, [](UOp n) { return n.is(Op::END); })) {
    return false;
  }
  std::unordered_map<UOp, UOp> written;  // memory: index
  std::vector<UOp> inside;
  for (UOp n : toposort(sink)) {
    // Registers and local memory live in one iteration, and so do those that are opened in it; one
    // that comes from outside goes on to the next.
    if (n.is(Op::AFTER) && is_register(n) && n.src(0).is(Op::DEFINE_REG)) {
      const auto waits = n.srcs().subspan(1);
      const bool is_carried =
          std::ranges::find(waits, range) != waits.end() && std::ranges::any_of(waits, [&](UOp s) {
            return is_effect(s.op()) && !is_in_scope(range, s);
          });
      if (is_carried) return false;
    }
    if (is_in_scope(range, n)) inside.push_back(n);
  }
  for (UOp n : inside) {
    if (!is_memory_store(n) || place_of(n.src(0)).base.is(Op::DEFINE_LOCAL)) continue;
    const auto [at, is_new] = written.emplace(place_of(n.src(0)).base, index_of(n));
    if (!is_new && at->second != index_of(n)) return false;
    if (!is_injective(index_of(n), range)) return false;
  }
  return std::ranges::all_of(inside, [&](UOp n) {
    if (!n.is(Op::LOAD)) return true;
    const auto at = written.find(place_of(n.src(0)).base);
    return at == written.end() || at->second == index_of(n);
  });
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
