// Programs -> steps: a LINEAR list as it stands.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/evaluate_parts.h"
#include "ir/evaluate_plan.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft::evaluator {
namespace {

UOp without_after(UOp n) {
  while (n.is(Op::AFTER)) n = n.src(0);
  return n;
}

// Whether source i of a listed node is read as a value; the others only order.
bool is_read(UOp n, size_t i) {
  switch (n.op()) {
    case Op::IF:
    case Op::RANGE:
    case Op::AFTER: return i == 0;
    case Op::BARRIER:
    case Op::COMMIT:
    case Op::WAIT:
    case Op::END:
    case Op::ENDIF:
    case Op::SINK: return false;
    default: return is_operand(n, i);
  }
}

class ListPlanner {
 public:
  Plan run(UOp linear) {
    add_unlisted_leaves(linear);
    for (UOp n : linear.srcs()) add(n);
    if (!blocks_.empty()) fail(blocks_.back().opener, "the list does not close it");
    plan_.slot_count = slots_.size();
    return std::move(plan_);
  }

 private:
  // A RANGE or an IF, and its step.
  struct Block {
    UOp opener;
    size_t step;
  };

  uint32_t slot_of(UOp n) { return slots_.emplace(n, uint32_t(slots_.size())).first->second; }

  void add_unlisted_leaves(UOp linear) {
    std::unordered_set<UOp> listed(linear.srcs().begin(), linear.srcs().end());
    for (UOp n : linear.srcs()) {
      for (size_t i = 0; i < n.src_count(); i++) {
        const UOp s = without_after(n.src(i));
        if (!is_read(n, i) || !kLeaves.has(s.op()) || s.is(Op::RANGE)) continue;
        if (listed.insert(s).second) add_step(StepKind::kNode, s);
      }
    }
  }

  void add(UOp n) {
    switch (n.op()) {
      case Op::SINK: return;
      case Op::RANGE:
        blocks_.push_back({n, plan_.steps.size()});
        add_step(StepKind::kOpen, n);
        return;
      case Op::END: close_loops(n); return;
      case Op::IF:
        blocks_.push_back({n, plan_.steps.size()});
        add_step(StepKind::kIf, n);
        return;
      case Op::ENDIF:
        if (blocks_.empty() || blocks_.back().opener != n.src(0)) fail(n, "its IF is not open");
        plan_.steps[blocks_.back().step].jump = plan_.steps.size();
        blocks_.pop_back();
        return;
      default: add_step(StepKind::kNode, n);
    }
  }

  void add_step(StepKind kind, UOp n) {
    Step step{kind, n, 0, {}};
    for (size_t i = 0; i < n.src_count(); i++) {
      if (is_read(n, i)) read_unlisted(n.src(i));
      if (is_read(n, i) && !slots_.contains(n.src(i))) {
        fail(n, "it comes before one of its sources");
      }
      step.sources.push_back(is_read(n, i) ? slot_of(n.src(i)) : Step::kNoSlot);
    }
    step.slot = slot_of(n);
    computed_.insert(n);
    plan_.steps.push_back(std::move(step));
  }

  // An AFTER that the list leaves out is read where it is used.
  void read_unlisted(UOp n) {
    std::vector<UOp> chain;
    for (; n.is(Op::AFTER) && !computed_.contains(n); n = n.src(0)) chain.push_back(n);
    if (!computed_.contains(n)) return;
    for (; !chain.empty(); chain.pop_back()) {
      const UOp after = chain.back();
      plan_.steps.push_back({StepKind::kNode, after, slot_of(after), {slot_of(after.src(0))}});
      plan_.steps.back().sources.resize(after.src_count(), Step::kNoSlot);
    }
  }

  void close_loops(UOp end) {
    std::vector<UOp> left(end.srcs().begin() + 1, end.srcs().end());
    left.erase(std::remove_if(left.begin(), left.end(), [](UOp r) { return r.is_const(); }),
               left.end());
    while (!left.empty()) {
      const auto closed =
          blocks_.empty() ? left.end() : std::find(left.begin(), left.end(), blocks_.back().opener);
      if (closed == left.end()) fail(end, "its ranges are not the innermost open blocks");
      const auto [range, step] = blocks_.back();
      plan_.steps.push_back({StepKind::kClose, range, slot_of(range), {}, step + 1});
      plan_.steps[step].jump = plan_.steps.size();
      blocks_.pop_back();
      left.erase(closed);
    }
  }

  Plan plan_;
  std::unordered_map<UOp, uint32_t> slots_;
  std::unordered_set<UOp> computed_;
  std::vector<Block> blocks_;
};

}  // namespace

Plan plan_list(UOp linear) { return ListPlanner().run(linear); }

}  // namespace weft::evaluator
