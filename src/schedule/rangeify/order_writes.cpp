// Cutting versions where writes meet.
#include "schedule/rangeify/order_writes.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/walk.h"
#include "schedule/rangeify/buffer_cost.h"
#include "schedule/rangeify/stored_values.h"
#include "schedule/rangeify/touched.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

// The same write to the memory as it is later.
UOp retarget(UOp effect, UOp memory) {
  Arena& arena = memory.arena();
  std::vector<UOp> srcs(effect.srcs().begin(), effect.srcs().end());
  if (effect.is(Op::END)) {
    srcs[0] = retarget(srcs[0], memory);
    return followed(effect, arena.with_srcs(effect, srcs));
  }
  std::vector<UOp> target(srcs[0].srcs().begin(), srcs[0].srcs().end());
  target[0] = memory;
  srcs[0] = arena.with_srcs(srcs[0], target);
  return followed(effect, arena.with_srcs(effect, srcs));
}

// What the writes of one part ask of a kernel.
class Load {
 public:
  // Adds a write; false, and nothing is added, if there is no room for it.
  bool add(const StoredValue& write, const KernelLimits& limits) {
    size_t statements = statements_, reductions = reductions_;
    std::vector<UOp> memories = memories_;
    visit_computation(write.roots(), [&](UOp n) {
      if (!is_read(n)) {
        statements++;
        reductions += n.is(Op::REDUCE) ? 1 : 0;
      } else if (std::ranges::find(memories, n.src(0)) == memories.end()) {
        memories.push_back(n.src(0));
      }
    });
    const bool fits = statements <= limits.statements && reductions <= limits.accumulators &&
                      memories.size() < limits.buffers;
    if (!fits && is_any_) return false;
    statements_ = statements, reductions_ = reductions, memories_ = std::move(memories);
    is_any_ = true;
    return true;
  }

 private:
  size_t statements_ = 0, reductions_ = 0;
  std::vector<UOp> memories_;
  bool is_any_ = false;
};

UOp in_parts(UOp after, const KernelLimits& limits) {
  Arena& arena = after.arena();
  UOp memory = after.src(0);
  std::vector<UOp> part{memory};
  Touched touched;
  Load load;
  bool was_alone = false;
  for (UOp effect : after.srcs().subspan(1)) {
    const StoredValue write{effect, true, true, after};
    const Elements elements = elements_of(write.store().src(0));
    const bool is_alone = work_of(write).has_contraction;
    const bool is_cut = part.size() > 1 && (is_alone || was_alone);
    was_alone = is_alone;
    if (is_cut || touched.meets(elements) || !load.add(write, limits)) {
      memory = arena.make(Op::AFTER, after.dtype(), part);
      part = {memory};
      touched = {};
      load = {};
      load.add(write, limits);
    }
    touched.add(elements);
    part.push_back(memory == after.src(0) ? effect : retarget(effect, memory));
  }
  return arena.make(Op::AFTER, after.dtype(), part);
}

}  // namespace

UOp order_writes(UOp sink, const KernelLimits& limits) {
  Arena& arena = sink.arena();
  return rebuild(sink, [&](UOp n, std::vector<UOp>& srcs) {
    const UOp result = arena.with_srcs(n, srcs);
    followed(n, result);
    return is_memory_after(result) && srcs.size() > 2 ? in_parts(result, limits) : result;
  });
}

}  // namespace weft
