// One walk to see whether anything is left to do, and one to do it.
#include "codegen/canonical.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "codegen/opt/loop_facts.h"
#include "codegen/opt/loops.h"
#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

bool has_size(UOp n) {
  const bool is_sized = n.is(Op::RANGE) || info(n.op()).group == OpGroup::Define;
  return is_sized && n.src_count() == 1 && !n.src(0).is_const();
}

bool is_its_source(UOp n) {
  const bool is_vector_of_one = n.is(Op::VECTORIZE) && n.src_count() == 1;
  const bool is_same_pointer =
      n.is(Op::CAST) && n.dtype().is_pointer() && n.dtype() == n.src(0).dtype();
  return is_vector_of_one || is_same_pointer;
}

bool is_after_element(UOp n) {
  return n.is(Op::AFTER) && n.dtype().is_pointer() && place_of(n.src(0)).is_indexed;
}

// AFTER(INDEX(memory, i), effects) is INDEX(AFTER(memory, effects), i), under CASTs, too.
UOp element_after(std::span<const UOp> srcs) {
  std::vector<UOp> path;
  UOp memory = srcs[0];
  for (; place_of(memory).is_indexed; memory = memory.src(0)) path.push_back(memory);
  std::vector<UOp> waits(srcs.begin(), srcs.end());
  waits[0] = memory;
  UOp out = memory.arena().make(Op::AFTER, memory.dtype(), waits);
  for (size_t i = path.size(); i-- > 0;) {
    std::vector<UOp> all(path[i].srcs().begin(), path[i].srcs().end());
    all[0] = out;
    out = memory.arena().with_srcs(path[i], all);
  }
  return out;
}

bool waits_for_after(UOp n) {
  return n.is(Op::AFTER) &&
         std::ranges::any_of(n.srcs().subspan(1), [](UOp s) { return s.is(Op::AFTER); });
}

// What waits for an AFTER waits for what that one waits for.
void flatten_waits(std::vector<UOp>& srcs) {
  std::vector<UOp> out{srcs[0]};
  const auto add = [&](UOp n) {
    if (std::ranges::find(out, n) == out.end()) out.push_back(n);
  };
  for (UOp s : std::span(srcs).subspan(1)) {
    if (!s.is(Op::AFTER)) add(s);
    for (; s.is(Op::AFTER); s = s.src(0)) {
      for (UOp wait : s.srcs().subspan(1)) add(wait);
    }
  }
  srcs = std::move(out);
}

constexpr size_t kMostLoops = 64;  // of reductions, in one kernel

// Marks REDUCEs with a RANGE that another REDUCE below them has, or an END; whether there are any.
bool mark_shared(std::span<const UOp> order, NodeMap& shared) {
  NodeMap below(order[0].arena()), numbers(order[0].arena()), closed(order[0].arena());
  size_t loops = 0;
  bool is_any = false;
  for (UOp n : order) {
    if (!n.is(Op::END)) continue;
    for (UOp r : n.srcs().subspan(1)) closed.put_number(r, 1);
  }
  for (UOp n : order) {
    uint64_t under = 0, own = 0;  // bits of RANGEs
    for (UOp s : n.srcs()) under |= below.number(s);
    for (UOp r : n.is(Op::REDUCE) ? n.srcs().subspan(1) : std::span<const UOp>()) {
      if (!numbers.has(r)) numbers.put_number(r, ++loops);
      if (numbers.number(r) <= kMostLoops) own |= uint64_t(1) << (numbers.number(r) - 1);
    }
    const bool is_loop = n.is(Op::REDUCE) && std::ranges::any_of(n.srcs().subspan(1), [&](UOp r) {
                           return closed.has(r);
                         });
    if ((under & own) != 0 || is_loop) {
      shared.put_number(n, 1);
      is_any = true;
    }
    if ((under | own) != 0) below.put_number(n, under | own);
  }
  return is_any;
}

void give_own_ranges(std::vector<UOp>& srcs, int64_t& next_id) {
  std::vector<std::pair<UOp, UOp>> pairs;
  for (UOp& r : std::span(srcs).subspan(1)) {
    pairs.emplace_back(
        r, r.arena().make(Op::RANGE, r.dtype(), r.srcs(), Arg::range(next_id++, r.axis())));
    r = pairs.back().second;
  }
  srcs[0] = replace_ranges(srcs[0], pairs);
}

// Of plain reductions: the loop with the larger step in memory is the outer one, so that memory is
// read in order whatever the order of its axes. All reductions of a kernel agree about two loops.
class LoopOrder {
 public:
  explicit LoopOrder(std::span<const UOp> order) {
    for (UOp n : order) {
      if (is_access(n)) accesses_.push_back(n);
    }
  }

  bool changes(UOp n) const {
    return is_reordered(n) && !std::ranges::is_sorted(loops(n), outer());
  }
  void sort(UOp n, std::vector<UOp>& srcs) const {
    if (is_reordered(n)) std::ranges::stable_sort(std::span(srcs).subspan(1), outer());
  }

 private:
  static bool is_reordered(UOp n) {
    return n.is(Op::REDUCE) && n.src_count() > 2 && !is_sum_of_products(n) &&
           std::ranges::all_of(loops(n),
                               [](UOp r) { return r.is(Op::RANGE) && r.src(0).is_const(); });
  }
  static std::span<const UOp> loops(UOp n) { return n.srcs().subspan(1); }

  double step(UOp range) const {
    double sum = 0;
    for (UOp n : accesses_) {
      if (!is_in_scope(range, n)) continue;
      const double step = std::abs(double(step_of(n, range).value_or(0)));
      sum += step * double(n.is(Op::LOAD) ? n.dtype().item_bytes() : 1);
    }
    return sum;
  }
  std::function<bool(UOp, UOp)> outer() const {
    return [this](UOp a, UOp b) { return step(a) > step(b); };
  }

  std::vector<UOp> accesses_;
};

}  // namespace

UOp canonical(UOp ast) {
  const std::vector<UOp> order = toposort(ast);
  NodeMap shared(ast.arena());
  const bool is_shared = mark_shared(order, shared);
  const LoopOrder loops(order);
  const auto changes = [&](UOp n) {
    return loops.changes(n) || has_size(n) || is_its_source(n) || is_after_element(n) ||
           waits_for_after(n);
  };
  if (!is_shared && std::ranges::none_of(order, changes)) return ast;
  int64_t next_id = free_range_id(ast);
  const UOp out = rebuild(ast, [&](UOp n, std::vector<UOp>& srcs) {
    if (is_its_source(n)) return srcs[0];
    if (n.is(Op::AFTER)) flatten_waits(srcs);
    if (is_after_element(n)) return element_after(srcs);
    if (has_size(n)) srcs[0] = simplify(srcs[0]);
    loops.sort(n, srcs);
    if (shared.has(n)) give_own_ranges(srcs, next_id);
    return n.arena().with_srcs(n, srcs);
  });
  if (out != ast) verify(out, Stage::kKernel);
  return out;
}

}  // namespace weft
