// Cutting versions where writes meet.
#include "schedule/rangeify/order_writes.h"

#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "schedule/rangeify/stored_values.h"
#include "schedule/rangeify/touched.h"

namespace weft {
namespace {

// The same write to the memory as it is later.
UOp retarget(UOp effect, UOp memory) {
  Arena& arena = memory.arena();
  std::vector<UOp> srcs(effect.srcs().begin(), effect.srcs().end());
  if (effect.is(Op::END)) {
    srcs[0] = retarget(srcs[0], memory);
    return arena.with_srcs(effect, srcs);
  }
  std::vector<UOp> target(srcs[0].srcs().begin(), srcs[0].srcs().end());
  target[0] = memory;
  srcs[0] = arena.with_srcs(srcs[0], target);
  return arena.with_srcs(effect, srcs);
}

UOp in_parts(UOp after) {
  Arena& arena = after.arena();
  UOp memory = after.src(0);
  std::vector<UOp> part{memory};
  Touched touched;
  for (UOp effect : after.srcs().subspan(1)) {
    const UOp store = effect.is(Op::END) ? effect.src(0) : effect;
    const Interval elements = elements_of(store.src(0));
    if (touched.meets(elements)) {
      memory = arena.make(Op::AFTER, after.dtype(), part);
      part = {memory};
      touched = {};
    }
    touched.add(elements);
    part.push_back(memory == after.src(0) ? effect : retarget(effect, memory));
  }
  return arena.make(Op::AFTER, after.dtype(), part);
}

}  // namespace

UOp order_writes(UOp sink) {
  Arena& arena = sink.arena();
  NodeMap results(arena);
  std::vector<UOp> srcs;
  visit_missing(
      sink, [&](UOp n) { return results.has(n); },
      [&](UOp n) {
        srcs.clear();
        for (UOp s : n.srcs()) srcs.push_back(results.get(s));
        const UOp result = arena.with_srcs(n, srcs);
        results.put(n, is_memory_after(result) && srcs.size() > 2 ? in_parts(result) : result);
      });
  return results.get(sink);
}

}  // namespace weft
