// END by END, inner ones first.
#include "codegen/idle_loops.h"

#include <span>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"

namespace weft {
namespace {

// The address, of memory or a register that is there AFTER the loops have been opened.
UOp address_in(UOp address, std::span<const UOp> loops) {
  std::vector<UOp> path;  // down to the memory
  while (!is_register(address) && (address.is(Op::CAST) || address.is(Op::INDEX))) {
    path.push_back(address);
    address = address.src(0);
  }
  address = after(address, loops);
  for (; !path.empty(); path.pop_back()) {
    std::vector<UOp> srcs(path.back().srcs().begin(), path.back().srcs().end());
    srcs[0] = address;
    address = address.arena().with_srcs(path.back(), srcs);
  }
  return address;
}

// The effect, of which each write depends on the loops.
UOp effect_in(UOp effect, std::span<const UOp> loops) {
  std::vector<UOp> ends;
  for (; effect.is(Op::END); effect = effect.src(0)) ends.push_back(effect);
  std::vector<UOp> srcs(effect.srcs().begin(), effect.srcs().end());
  if (effect.is(Op::STORE)) srcs[0] = address_in(srcs[0], loops);
  effect = effect.arena().with_srcs(effect, srcs);
  for (; !ends.empty(); ends.pop_back()) {
    srcs.assign(ends.back().srcs().begin(), ends.back().srcs().end());
    srcs[0] = effect;
    effect = effect.arena().with_srcs(ends.back(), srcs);
  }
  return effect;
}

UOp settled(UOp end) {
  std::vector<UOp> loops, idle;
  for (UOp r : end.srcs().subspan(1)) {
    const bool is_used = is_in_scope(r, end.src(0));
    const bool may_leave = bounds(r.src(0)).lo >= 1 && r.axis() != AxisType::kThread;
    if (!is_used && may_leave) continue;
    loops.push_back(r);
    if (!is_used) idle.push_back(r);
  }
  if (idle.empty() && loops.size() + 1 == end.src_count()) return end;
  std::vector<UOp> srcs{idle.empty() ? end.src(0) : effect_in(end.src(0), idle)};
  if (loops.empty()) return srcs[0];
  srcs.insert(srcs.end(), loops.begin(), loops.end());
  return end.arena().with_srcs(end, srcs);
}

}  // namespace

UOp settle_idle_loops(UOp sink) {
  return rebuild(sink, [](UOp n, std::span<const UOp> srcs) {
    const UOp made = n.arena().with_srcs(n, srcs);
    return made.is(Op::END) ? settled(made) : made;
  });
}

}  // namespace weft
