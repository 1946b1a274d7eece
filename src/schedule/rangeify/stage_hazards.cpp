// Finding reads that a write in place endangers.
#include "schedule/rangeify/stage_hazards.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/reads.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "schedule/rangeify/stored_values.h"
#include "schedule/rangeify/touched.h"
#include "symbolic/linear.h"

namespace weft {
namespace {

std::span<const UOp> at(UOp index) { return index.srcs().subspan(1); }

// Different values of the loops write different elements: every loop has a stride larger than all
// that the inner ones can reach.
bool is_injective(UOp target, std::span<const UOp> ranges) {
  std::vector<UOp> covered;
  for (UOp i : at(target)) {
    const std::optional<LinearSum> sum = linear_sum(i);
    if (!sum) return false;
    std::vector<std::pair<int64_t, int64_t>> steps;  // |stride|, places
    for (const Term& t : sum->terms) {
      if (ranges_of(t.base).empty()) continue;  // no loop changes it
      if (!t.base.is(Op::RANGE) || !t.base.src(0).is_const()) return false;
      steps.emplace_back(std::abs(t.coefficient), t.base.src(0).const_int());
      covered.push_back(t.base);
    }
    std::sort(steps.begin(), steps.end());
    int64_t reach = 0;
    for (const auto& [stride, places] : steps) {
      if (stride <= reach) return false;
      reach += stride * (places - 1);
    }
  }
  return std::all_of(ranges.begin(), ranges.end(), [&](UOp r) {
    return !r.is(Op::RANGE) || bounds(r).hi <= 0 ||
           std::find(covered.begin(), covered.end(), r) != covered.end();
  });
}

bool is_endangered(const StoredValue& write, size_t writes, const Touched& touched) {
  const UOp target = write.store().src(0), memory = target.src(0);
  const bool runs_once = std::ranges::none_of(
      write.ranges(), [](UOp r) { return r.is(Op::RANGE) && bounds(r).hi > 0; });
  if (writes == 1 && runs_once) return false;  // it reads before it writes
  bool found = false;
  visit_computation(write.roots(), [&](UOp n) {
    if (found || !is_read(n) || n.src(0) != memory) return;
    const bool is_own_place = n == target && is_injective(target, write.ranges());
    if (is_own_place && writes == 1) return;
    found = touched.meets(elements_of(n));
  });
  return found;
}

UOp stored_first(UOp value, std::span<const UOp> ranges) {
  Arena& arena = value.arena();
  const UOp memory =
      bufferize(arena.make(Op::CONTIGUOUS, value.dtype(), {value}), ranges, AddrSpace::kGlobal);
  return index(memory, ranges);
}

// A write that combines runs for every place of its loops: they name all of them, or its value is
// stored for each.
bool repeats_itself(const StoredValue& write) {
  const UOp store = write.store();
  return store.accumulates() && std::ranges::any_of(write.ranges(), [&](UOp r) {
           return r.is(Op::RANGE) && !is_in_scope(r, store);
         });
}

bool reads(UOp value, UOp memory) {
  bool found = false;
  visit_computation(std::span(&value, 1),
                    [&](UOp n) { found = found || (is_read(n) && n.src(0) == memory); });
  return found;
}

// The integers that an index is made of, or a gate on it.
std::vector<UOp> integers_in(std::span<const UOp> roots) {
  std::vector<UOp> out, todo(roots.begin(), roots.end());
  NodeMap seen(roots[0].arena());
  while (!todo.empty()) {
    const UOp n = todo.back();
    todo.pop_back();
    if (seen.has(n) || !reads_memory(n)) continue;
    seen.put_number(n, 1);
    if (!n.dtype().is_index() && !n.dtype().is_bool()) {
      out.push_back(n);
    } else if (!is_read(n)) {
      todo.insert(todo.end(), n.srcs().begin(), n.srcs().end());
    }
  }
  return out;
}

// Indices of a STORE that read the memory that it writes to, stored first.
void stage_indices(std::vector<UOp>& srcs) {
  const UOp memory = srcs[0].src(0);
  std::vector<UOp> roots(srcs[0].srcs().begin() + 1, srcs[0].srcs().end());
  roots.insert(roots.end(), srcs.begin() + 2, srcs.end());
  Arena& arena = memory.arena();
  NodeMap staged(arena);
  bool is_any = false;
  for (UOp n : integers_in(roots)) {
    if (!reads(n, memory)) continue;
    staged.put(n, stored_first(n, ranges_of(n)));
    is_any = true;
  }
  if (!is_any) return;
  // In the arithmetic of indices alone: what lies beneath a read has been computed for others too.
  const auto is_kept = [&](UOp n) { return staged.has(n) || !reads_memory(n) || is_read(n); };
  const auto result_of = [&](UOp n) { return staged.has(n) ? staged.get(n) : n; };
  const auto with_staged = [&](UOp root) {
    return result_of(rebuild_part(root, is_kept, [&](UOp n, std::vector<UOp>& parts) {
      for (UOp& part : parts) part = result_of(part);
      return arena.with_srcs(n, parts);
    }));
  };
  std::vector<UOp> target{memory};
  for (UOp i : srcs[0].srcs().subspan(1)) target.push_back(with_staged(i));
  srcs[0] = arena.with_srcs(srcs[0], target);
  for (size_t i = 2; i < srcs.size(); i++) srcs[i] = with_staged(srcs[i]);
}

}  // namespace

UOp stage_hazards(UOp sink) {
  Arena& arena = sink.arena();
  const std::vector<StoredValue> values = stored_values(sink);
  NodeMap endangered(arena);  // STORE -> 1 + its write
  bool is_any = false;
  for (size_t first = 0; first < values.size();) {
    size_t last = first + 1;
    while (values[first].is_write && last < values.size() &&
           values[last].version == values[first].version) {
      last++;
    }
    Touched touched;
    if (values[first].is_write) {
      for (size_t i = first; i < last; i++) {
        touched.add(elements_of(values[i].store().src(0)));
      }
    }
    for (size_t i = first; i < last && values[first].is_write; i++) {
      if (!repeats_itself(values[i]) && !is_endangered(values[i], last - first, touched)) continue;
      endangered.put_number(values[i].store(), i + 1);
      is_any = true;
    }
    first = last;
  }
  if (!is_any) return sink;
  return rebuild(sink, [&](UOp n, std::vector<UOp>& srcs) {
    if (const uint64_t number = endangered.number(n)) {
      // What a gate holds back may not be computed without it.
      if (srcs.size() > 2) {
        srcs[1] = where(srcs[2], srcs[1], constant_bits(arena, srcs[1].dtype(), 0));
      }
      srcs[1] = stored_first(srcs[1], values[number - 1].ranges());
      stage_indices(srcs);
    }
    return followed(n, arena.with_srcs(n, srcs));
  });
}

}  // namespace weft
