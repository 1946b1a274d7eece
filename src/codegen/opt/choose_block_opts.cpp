// Rows first, then the statements one by one, each as if it were all there is, then threads.
#include "codegen/opt/choose_block_opts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "codegen/opt/choose_opts.h"
#include "codegen/opt/loop_facts.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "codegen/replace_ranges.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "schedule/rangeify/block_loops.h"

namespace weft {
namespace {

constexpr int64_t kRows = 64;                // that run together, without a contraction
constexpr int64_t kLocalArgument = 1 << 20;  // local memory as an argument, by its id

class Chooser {
 public:
  Chooser(UOp sink, const Target& target) : sink_(mark_parallel_loops(sink)), target_(target) {
    alone_ = target;
    alone_.cores = 1;
  }

  OptList run() {
    block();
    for (const Statement& loops : statements()) choose(loops);
    thread();
    return opts_;
  }

 private:
  bool attempt(const Opt& opt) {
    if (!why_not(sink_, opt).empty()) return false;
    sink_ = apply_opt(sink_, opt);
    opts_.push_back(opt);
    return true;
  }

  // The innermost of the loops that have the memory for themselves.
  void block() {
    Opt best{OptKind::kBlock, 0, 1};
    for (UOp n : sink_.srcs()) {
      for (UOp r : n.srcs().subspan(n.is(Op::END) ? 1 : n.src_count())) {
        if (r.axis() != AxisType::kGlobal || most_places(r) < 2) continue;
        const Opt opt{OptKind::kBlock, r.range_id(), rows_of(r)};
        if (why_not(sink_, opt).empty()) best = opt;
      }
    }
    if (best.amount > 1) attempt(best);
  }

  // Not by a loop whose size depends on the row.
  static bool uses(UOp root, UOp row) {
    NodeMap seen(root.arena());
    std::vector<UOp> todo{root};
    while (!todo.empty()) {
      const UOp n = todo.back();
      todo.pop_back();
      if (n == row) return true;
      if (n.is(Op::RANGE) || seen.has(n)) continue;
      seen.put_number(n, 1);
      todo.insert(todo.end(), n.srcs().begin(), n.srcs().end());
    }
    return false;
  }

  // Those of a contraction share what they read, and those that lie side by side in memory are read
  // together. Others are read one after the other.
  int64_t rows_of(UOp row) const {
    const std::vector<UOp> order = toposort(sink_);
    const int64_t places = most_places(row);
    const auto is_shared = [&](UOp n) {
      return is_sum_of_products(n) && uses(n.src(0).src(0), row) != uses(n.src(0).src(1), row);
    };
    if (std::ranges::none_of(order, is_shared)) {
      const bool is_near = std::ranges::any_of(order, [&](UOp n) {
        return n.is(Op::LOAD) && place_of(n.src(0)).base.is(Op::DEFINE_GLOBAL) &&
               step_of(n, row) == 1;
      });
      return is_near ? fitting(kRows, places) : 1;
    }
    return rows_together(places);
  }

  static UOp pointer_of(UOp store) {
    UOp pointer = store.src(0);
    while (pointer.is(Op::CAST)) pointer = pointer.src(0);
    return pointer.is(Op::INDEX) ? pointer.src(0) : pointer;
  }

  // A write by the ids of its loops: those that its memory does not wait for, or, if there are
  // none, those of its reductions.
  using Statement = std::vector<int64_t>;

  std::vector<Statement> statements() const {
    std::vector<Statement> out;
    NodeMap seen(sink_.arena());
    const std::vector<UOp> order = toposort(sink_);
    for (UOp n : order) {
      if (n.is(Op::END) && n.src(0).is(Op::STORE)) seen.put(n.src(0), n);
    }
    for (UOp n : order) {
      if (!n.is(Op::STORE) || is_register(n.src(0))) continue;
      Statement loops = own_loops(seen.has(n) ? seen.get(n) : n);
      if (loops.empty()) loops = reduced_by(n);
      if (!loops.empty()) out.push_back(std::move(loops));
    }
    return out;
  }

  static Statement own_loops(UOp n) {
    Statement out;
    if (!n.is(Op::END)) return out;
    const UOp memory = pointer_of(n.src(0));
    for (UOp r : n.srcs().subspan(1)) {
      if (!is_in_scope(r, memory) && !is_outer(n, r)) out.push_back(r.range_id());
    }
    return out;
  }

  // What the write computes itself: not what is in memory by then.
  template <class Visit>
  static void visit_own(UOp store, Visit&& visit) {
    NodeMap seen(store.arena());
    std::vector<UOp> todo{store.src(1)};
    while (!todo.empty()) {
      const UOp n = todo.back();
      todo.pop_back();
      if (seen.has(n) || (n.dtype().is_pointer() && !n.is(Op::INDEX))) continue;
      seen.put_number(n, 1);
      visit(n);
      todo.insert(todo.end(), n.srcs().begin(), n.srcs().end());
    }
  }

  static Statement reduced_by(UOp store) {
    Statement out;
    visit_own(store, [&](UOp n) {
      for (UOp r : n.srcs().subspan(n.is(Op::REDUCE) ? 1 : n.src_count())) {
        out.push_back(r.range_id());
      }
    });
    return out;
  }

  // Of a write to what is no local memory: the loops in which local memory is filled for it.
  static bool is_outer(UOp end, UOp range) {
    for (UOp n : toposort(end.src(0).src(1))) {
      const bool is_memory = n.is(Op::AFTER) && n.dtype().is_pointer();
      if (is_memory && is_in_scope(range, n)) return true;
    }
    return false;
  }

  UOp statement(const Statement& loops) const {
    for (UOp n : toposort(sink_)) {
      const bool is_end = n.is(Op::END) && n.src(0).is(Op::STORE);
      if (!is_end && !n.is(Op::STORE)) continue;
      const Statement listed = is_end ? own_loops(n) : reduced_by(n);
      const bool is_it = std::ranges::all_of(
          loops, [&](int64_t id) { return std::ranges::find(listed, id) != listed.end(); });
      if (is_it) return n;
    }
    return {};
  }

  // The statement as a kernel of its own: loops around it are variables, local memory arguments.
  UOp kernel_of(UOp end, const Statement& loops) const {
    Arena& arena = sink_.arena();
    std::vector<UOp> own{end};
    if (end.is(Op::END)) {
      own[0] = end.src(0);
      for (UOp r : end.srcs().subspan(1)) {
        if (std::ranges::find(loops, r.range_id()) != loops.end()) own.push_back(r);
      }
    }
    UOp alone = own.size() == 1 ? own[0] : arena.with_srcs(end, own);
    std::vector<std::pair<UOp, UOp>> memories;
    for (UOp n : toposort(alone)) {
      const bool is_memory = n.dtype().is_pointer() && !n.is(Op::INDEX) && !n.is(Op::CAST);
      const UOp base = place_of(n).base;
      if (!is_memory || !base.is(Op::DEFINE_LOCAL)) continue;
      memories.emplace_back(n, define_global(arena, base.dtype().pointee(), Dim(base.src(0)),
                                             kLocalArgument + base.number()));
    }
    alone = substitute(alone, memories);
    std::vector<std::pair<UOp, UOp>> around;
    for (UOp r : ranges_of(alone)) {
      around.emplace_back(r, variable(arena, fmt::format("around{}", r.range_id()), 0,
                                      std::max<int64_t>(most_places(r) - 1, 0)));
    }
    return sink(around.empty() ? alone : replace_ranges(alone, around));
  }

  void choose(const Statement& loops) {
    const UOp end = statement(loops);
    if (!end) return;
    UOp kernel = kernel_of(end, loops);
    const OptList wanted = choose_opts(kernel, alone_);
    kernel = mark_parallel_loops(kernel);
    std::map<int64_t, int64_t> ids;  // of loops that are new, there and here
    const auto here = [&](int64_t id) { return ids.contains(id) ? ids.at(id) : id; };
    for (const Opt& opt : wanted) {
      const bool is_stage = opt.kind == OptKind::kStage;
      if (is_stage && opt.axis >= kLocalArgument) continue;  // it is near
      Opt own = opt;
      if (!is_stage) own.axis = here(opt.axis);
      if (is_stage || opt.kind == OptKind::kMerge) own.amount = here(opt.amount);
      const int64_t there_first = free_range_id(kernel), here_first = free_range_id(sink_);
      if (!attempt(own)) return;
      kernel = apply_opt(kernel, opt);
      const int64_t there_last = free_range_id(kernel);
      for (int64_t id = there_first; id < there_last; id++) {
        ids[id] = here_first + (id - there_first);
      }
    }
  }

  // Loops that have local memory for themselves: in others all threads would fill the same.
  void thread() {
    if (target_.cores < 2) return;
    const std::vector<UOp> order = toposort(sink_);
    for (UOp n : sink_.srcs()) {
      for (UOp r : n.srcs().subspan(n.is(Op::END) ? 1 : n.src_count())) {
        const bool is_own = std::ranges::all_of(order, [&](UOp s) {
          return !(s.is(Op::AFTER) && s.src(0).is(Op::DEFINE_LOCAL)) || is_in_scope(r, s) ||
                 std::ranges::none_of(s.srcs(), [](UOp o) { return o.is(Op::RANGE); });
        });
        const bool is_enough = most_places(r) >= int64_t(target_.cores);
        if (is_own && is_enough && attempt({OptKind::kThread, r.range_id(), 0})) return;
      }
    }
  }

  UOp sink_;
  const Target& target_;
  Target alone_;  // one core of it
  OptList opts_;
};

}  // namespace

OptList choose_block_opts(UOp sink, const Target& target) { return Chooser(sink, target).run(); }

}  // namespace weft
