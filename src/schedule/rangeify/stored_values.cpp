// Finding what is stored.
#include "schedule/rangeify/stored_values.h"

#include <algorithm>
#include <span>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/reads.h"
#include "ir/walk.h"

namespace weft {

std::vector<StoredValue> stored_values(UOp sink) {
  std::vector<StoredValue> out;
  NodeMap seen(sink.arena()), written(sink.arena());  // nodes; writes found
  const auto visit = [&](UOp n) {
    seen.put_number(n, 1);
    if (n.is(Op::BUFFERIZE)) {
      out.push_back({n, false, n.src(0).is(Op::CONTIGUOUS), {}});
    } else if (is_memory_after(n)) {
      for (UOp effect : n.srcs().subspan(1)) {
        if (written.has(effect)) continue;
        written.put_number(effect, 1);
        out.push_back({effect, true, true, n});
      }
    }
  };
  visit_missing(sink, [&](UOp n) { return n.src_count() == 0 || seen.has(n); }, visit);
  return out;
}

bool StoredValue::is_serial() const {
  if (!is_write) return false;
  return store().accumulates() || value().is(Op::COPY) ||
         std::ranges::any_of(store().src(0).srcs().subspan(1), reads_memory);
}

std::vector<UOp> StoredValue::roots() const {
  if (!is_write) return {value()};
  std::vector<UOp> out(store().srcs().begin() + 1, store().srcs().end());
  for (UOp i : store().src(0).srcs().subspan(1)) {
    if (reads_memory(i)) out.push_back(i);
  }
  return out;
}

UOp memory_of(UOp n) { return place_of(n).base; }

bool is_memory_after(UOp n) {
  return n.is(Op::AFTER) && n.dtype().space != AddrSpace::kLocal && !is_register(n);
}

bool is_read(UOp n) { return n.is(Op::INDEX) && n.dtype().space != AddrSpace::kLocal; }

double places(std::span<const UOp> ranges) {
  constexpr double k_usual_places = 1024;
  double product = 1;
  for (UOp r : ranges) {
    if (!r.is(Op::RANGE)) continue;
    const double most = double(bounds(r).hi) + 1;
    product *= r.src(0).is_const() ? most : std::min(most, k_usual_places);
  }
  return product;
}

void put_carried_last(UOp value, std::vector<UOp>& ranges) {
  if (ranges.size() < 2) return;
  std::vector<UOp> carried;
  const UOp roots[] = {value};
  visit_computation(roots, [&](UOp n) {
    if (!n.is(Op::AFTER) || !n.src(0).is(Op::DEFINE_REG)) return;
    const bool is_started = std::ranges::any_of(n.srcs(), [](UOp s) { return s.is(Op::STORE); });
    for (UOp s : n.srcs()) {
      if (is_started && s.is(Op::RANGE)) carried.push_back(s);
    }
  });
  std::ranges::stable_partition(
      ranges, [&](UOp r) { return std::ranges::find(carried, r) == carried.end(); });
}

}  // namespace weft
