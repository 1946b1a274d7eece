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
  std::vector<UOp> roots(write.store().srcs().begin() + 1, write.store().srcs().end());
  bool found = false;
  visit_computation(roots, [&](UOp n) {
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
      if (!is_endangered(values[i], last - first, touched)) continue;
      endangered.put_number(values[i].store(), i + 1);
      is_any = true;
    }
    first = last;
  }
  if (!is_any) return sink;
  return rebuild(sink, [&](UOp n, std::vector<UOp>& srcs) {
    if (const uint64_t number = endangered.number(n)) {
      srcs[1] = stored_first(srcs[1], values[number - 1].ranges());
    }
    return arena.with_srcs(n, srcs);
  });
}

}  // namespace weft
