// ENDs and REDUCEs list their loops outermost first.
#include "runtime/loop_nest.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"

namespace weft {
namespace {

bool has(std::span<const UOp> loops, UOp range) {
  return std::ranges::find(loops, range) != loops.end();
}

void add(std::vector<UOp>& loops, std::span<const UOp> more) {
  for (UOp range : more) {
    if (range.is(Op::RANGE) && !has(loops, range)) loops.push_back(range);
  }
}

}  // namespace

LoopNest::LoopNest(std::span<const UOp> order) {
  for (const Op op : {Op::REDUCE, Op::END}) {
    for (UOp n : order) {
      if (n.is(op)) closers_.push_back(n);
    }
  }
}

std::vector<UOp> LoopNest::around(UOp n) const {
  const std::span<const UOp> own = n.is(Op::REDUCE) ? n.srcs().subspan(1) : std::span<const UOp>();
  std::vector<UOp> loops;
  add(loops, own.empty() ? ranges_of(n) : ranges_of(n.src(0)));
  add(loops, own);
  size_t before = 0;
  while (std::exchange(before, loops.size()) != loops.size()) {
    for (UOp closer : closers_) {
      const std::span<const UOp> closed = closer.srcs().subspan(1);
      // A loop that several reductions name is one for each.
      if (closer != n && closer.is(Op::REDUCE) && std::ranges::equal(closed, own)) continue;
      size_t count = closed.size();
      while (count > 0 && !has(loops, closed[count - 1])) count--;
      if (count == 0) continue;
      add(loops, closed.first(count));
      add(loops, ranges_of(closer));
    }
  }
  return loops;
}

}  // namespace weft
