// A kernel while its optimisations are chosen: as those so far have left it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

class KernelLoops {
 public:
  // What can be gone back to.
  struct State {
    UOp sink;
    size_t count;
  };

  KernelLoops(UOp sink, const Target& target);

  const Target& target() const { return target_; }
  UOp sink() const { return sink_; }
  const OptList& opts() const { return opts_; }
  const std::vector<UOp>& order() const { return order_; }        // all nodes
  const std::vector<UOp>& accesses() const { return accesses_; }  // of memory
  const std::vector<UOp>& parallel() const { return parallel_; }  // free loops
  const std::vector<UOp>& reductions() const { return reductions_; }

  // Does it where it applies.
  bool attempt(OptKind kind, int64_t axis, int64_t amount);
  State state() const { return {sink_, opts_.size()}; }
  void go_back(const State& state);

  UOp range(int64_t id) const;
  // The loops of the last END, the outermost first.
  std::vector<UOp> loops_of_end() const;
  // The loop outside of another one in what closes both.
  UOp loop_around(int64_t id) const;

  // Of a vector of the widest value in the loop.
  int64_t lanes_in(UOp of) const;
  // Of the vectors that do a loop in as few as there can be, the last one filled up: the narrowest.
  int64_t lanes_for(UOp of) const;
  // That compute values in the loop.
  int64_t nodes_in(UOp of) const;
  // How often the innermost body runs, at most.
  double work() const;
  bool writes_in_order(UOp r) const;

  // The outermost loop that has work for all cores goes to threads; `along`, a loop that will be
  // cut further, in pieces. Where no loop has, one with work for some of the cores.
  void thread(UOp along);

 private:
  void look();
  bool thread_one(UOp along, int64_t least);
  bool has_reduction_outside(UOp loop) const;

  UOp sink_;
  const Target& target_;
  OptList opts_;
  std::vector<UOp> order_, accesses_, parallel_, reductions_;
};

// Of a vector that is worth it.
constexpr int64_t kLeastLanes = 4;

}  // namespace weft
