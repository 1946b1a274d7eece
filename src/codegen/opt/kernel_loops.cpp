// A kernel and one optimisation after the other become the kernel that they leave.
#include "codegen/opt/kernel_loops.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/opt/loop_facts.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr int64_t kThreadWork = 1 << 15;  // operations that are worth a thread

}  // namespace

KernelLoops::KernelLoops(UOp sink, const Target& target)
    : sink_(mark_parallel_loops(sink)), target_(target) {
  look();
}

void KernelLoops::look() {
  order_ = toposort(sink_);
  accesses_.clear();
  parallel_.clear();
  reductions_.clear();
  for (UOp n : order_) {
    if (is_access(n)) accesses_.push_back(n);
    if (!n.is(Op::RANGE)) continue;
    if (n.axis() == AxisType::kGlobal) parallel_.push_back(n);
    if (n.axis() == AxisType::kReduce) reductions_.push_back(n);
  }
}

bool KernelLoops::attempt(OptKind kind, int64_t axis, int64_t amount) {
  const Opt opt{kind, axis, amount};
  if (!why_not(sink_, opt).empty()) return false;
  sink_ = apply_opt(sink_, opt);
  opts_.push_back(opt);
  look();
  return true;
}

void KernelLoops::go_back(const State& state) {
  sink_ = state.sink;
  opts_.resize(state.count);
  look();
}

UOp KernelLoops::range(int64_t id) const { return range_by_id(sink_, id); }

std::vector<UOp> KernelLoops::loops_of_end() const {
  std::vector<UOp> out;
  for (UOp n : sink_.srcs()) {
    if (!n.is(Op::END)) continue;
    out.clear();
    for (UOp r : n.srcs().subspan(1)) {
      if (r.is(Op::RANGE)) out.push_back(r);
    }
  }
  return out;
}

UOp KernelLoops::loop_around(int64_t id) const {
  for (UOp n : sink_.srcs()) {
    UOp before;
    for (UOp r : n.srcs().subspan(n.is(Op::END) ? 1 : n.src_count())) {
      if (r.range_id() == id) return before;
      before = r;
    }
  }
  return {};
}

int64_t KernelLoops::lanes_in(UOp of) const {
  size_t bytes = 1;
  for (UOp n : order_) {
    const DType type = n.dtype();
    if (type.is_pointer() || type.is_void() || type.is_index() || !is_in_scope(of, n)) continue;
    bytes = std::max(bytes, computed_bytes(type));
  }
  return int64_t(target_.vector_bytes / bytes);
}

int64_t KernelLoops::lanes_for(UOp of) const {
  const int64_t places = most_places(of);
  const auto vectors = [&](int64_t n) { return (places + n - 1) / n; };
  int64_t lanes = lanes_in(of);
  while (lanes > kLeastLanes && vectors(lanes / 2) == vectors(lanes)) lanes /= 2;
  return lanes;
}

int64_t KernelLoops::nodes_in(UOp of) const {
  return std::ranges::count_if(order_, [&](UOp n) {
    return is_in_scope(of, n) && !n.dtype().is_index() && !n.dtype().is_pointer();
  });
}

double KernelLoops::work() const {
  double most = 0;
  for (UOp n : order_) most = std::max(most, places_of(n));
  return most;
}

bool KernelLoops::writes_in_order(UOp r) const {
  return std::ranges::all_of(accesses_, [&](UOp n) {
    return !n.is(Op::STORE) || !is_in_scope(r, n) || step_of(n, r) == 1;
  });
}

void KernelLoops::thread(UOp along) {
  if (target_.cores < 2 || work() < double(kThreadWork)) return;
  const int64_t cores = int64_t(target_.cores);
  if (thread_one(along, cores)) return;
  if (!along && !thread_one({}, (cores + 1) / 2)) thread_one({}, 2);
}

bool KernelLoops::thread_one(UOp along, int64_t least) {
  for (UOp r : loops_of_end()) {
    if (most_places(r) < least || r.axis() != AxisType::kGlobal) continue;
    // Every thread would compute what stands outside of the loop.
    if (has_reduction_outside(r)) return false;
    // Whole cache lines, and as many as are worth a thread.
    const auto each = std::max<int64_t>(int64_t(work() / double(most_places(r))), 1);
    const int64_t lines = each < 4 ? 1024 : 64, fewest = std::max<int64_t>(lines, 4096 / each);
    const int64_t piece =
        (most_places(r) / (int64_t(target_.cores) * 4) + lines - 1) / lines * lines;
    const int64_t amount = r == along ? std::max(piece, fewest) : 0;
    if (attempt(OptKind::kThread, r.range_id(), amount)) return true;
  }
  return false;
}

bool KernelLoops::has_reduction_outside(UOp loop) const {
  return std::ranges::any_of(order_,
                             [&](UOp n) { return n.is(Op::REDUCE) && !is_in_scope(loop, n); });
}

}  // namespace weft
