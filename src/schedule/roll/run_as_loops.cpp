// Small statements gathered into kernels, large ones scheduled as graphs of their own.
#include "schedule/roll/run_as_loops.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/config.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "rewrite/graph_rewrite.h"
#include "schedule/kernel_table.h"
#include "schedule/rangeify/patterns.h"
#include "schedule/rangeify/pipeline.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/roll/loop_bodies.h"
#include "schedule/roll/loop_events.h"
#include "schedule/roll/loop_kernel.h"
#include "schedule/roll/loop_levels.h"
#include "schedule/roll/loop_statements.h"
#include "schedule/roll/region.h"
#include "schedule/roll/sums_of_parts.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

constexpr size_t kLeastStatements = 16;    // fewer are left to the other passes
constexpr size_t kLeastRepeats = 4;        // statements for each body, some of them large
constexpr size_t kOperationsOfOne = 4;     // statement, about
constexpr int64_t kMostRounded = 1 << 14;  // elements of slots: a size that many programs have
constexpr size_t kMostTables = 4;          // of one kernel, about
constexpr size_t kMostBodies = 64;         // of one kernel
constexpr size_t kManyBodies = 24;         // of a program: other cuts may do with fewer
constexpr size_t kManyRepeats =
    8;  // statements for each body, where nothing is written, of so many
// Where the loops of a kernel cannot follow each other across a device, one thread runs them: the
// operations of a statement that it does as soon as a kernel of its own starts.
constexpr double kMostWorkOfThread = 256;
// Kernels whose steps run side by side: so many, or a share of the steps.
constexpr size_t kFewLaunches = 4, kMostLaunches = 32, kStepsOfLaunch = 32;

// Drivers of WebGPU end a thread that runs more than 65,535 iterations of loops.
double most_iterations_on(const std::string& device) {
  return device.starts_with("WEBGPU") ? 60'000 : std::numeric_limits<double>::infinity();
}

double most_work(const KernelLimits& limits) {
  return limits.sequences ? kMostWork : kMostWorkOfThread;
}

int64_t numel_of(UOp n) {
  int64_t count = 1;
  for (const Dim d : shape_of(n)) count *= d.value();
  return count;
}

class Composer {
 public:
  Composer(UOp sink, const LoopStatements& statements, const LoopProgram& program,
           const KernelLimits& limits, const std::string& device)
      : arena_(sink.arena()),
        statements_(statements),
        program_(program),
        limits_(limits),
        device_(device) {
    const LoopEvents& events = statements.events();
    for (UOp m : events.memories()) {
      buffers_.memories.push_back(
          m.is(Op::BUFFER) ? m : buffer(arena_, m.dtype(), numel_of(m), device, arena_.fresh_id()));
    }
    for (const LoopSlots& s : statements.slots()) {
      const bool may_be_longer = !s.is_output && s.size < kMostRounded;
      const int64_t size = may_be_longer ? int64_t(std::bit_ceil(uint64_t(s.size))) : s.size;
      buffers_.slots.push_back(buffer(arena_, s.dtype, size, device, arena_.fresh_id()));
    }
  }

  LoopSchedule run(UOp sink) {
    if (limits_.sequences || !add_levels()) add_in_order();
    std::vector<UOp> srcs;
    for (UOp s : sink.srcs()) srcs.push_back(output(s));
    result_.graph = {arena_.with_srcs(sink, srcs), std::move(asts_)};
    return std::move(result_);
  }

 private:
  void add_in_order() {
    const std::vector<LoopStep>& steps = program_.steps;
    for (size_t i = 0; i < steps.size();) {
      size_t end = end_of_loops(i);
      while (end > i + 1 && !limits_.sequences &&
             most_iterations(program_, std::span(steps).subspan(i, end - i)) >
                 most_iterations_on(device_)) {
        end = i + (end - i) / 2;
      }
      if (end > i) {
        add_loops(std::span(steps).subspan(i, end - i), StepOrder::kGiven);
        i = end;
      } else {
        add_graph(steps[i++]);
      }
    }
  }

  // Level by level, body by body, if they are few.
  bool add_levels() {
    const auto is_small = [&](const LoopBody& b) { return b.work <= kMostWork; };
    if (!std::ranges::all_of(program_.bodies, is_small)) return false;
    const std::optional<std::vector<uint32_t>> levels = step_levels(program_);
    if (!levels) return false;
    std::map<std::pair<uint32_t, uint32_t>, std::vector<LoopStep>> launches;
    for (size_t i = 0; i < levels->size(); i++) {
      const LoopStep& step = program_.steps[i];
      launches[{(*levels)[i], step.body}].push_back(step);
      if (launches.size() > kMostLaunches) return false;
    }
    if (launches.size() > std::max(kFewLaunches, levels->size() / kStepsOfLaunch)) return false;
    for (const auto& [key, steps] : launches) add_loops(steps, StepOrder::kAny);
    return true;
  }

  // Past the small statements from `first` on that one kernel can run.
  size_t end_of_loops(size_t first) const {
    std::vector<uint32_t> bodies;
    std::vector<std::pair<LoopLeaf::Kind, uint32_t>> buffers;
    size_t statements = 0, reductions = 0;
    size_t i = first;
    for (; i < program_.steps.size(); i++) {
      const uint32_t body = program_.steps[i].body;
      if (std::ranges::find(bodies, body) != bodies.end()) continue;
      const LoopBody& b = program_.bodies[body];
      statements += b.statements;
      reductions += b.reductions;
      add_buffers(b, buffers);
      const bool is_full =
          !bodies.empty() &&
          (bodies.size() == kMostBodies || statements > limits_.statements ||
           reductions > limits_.accumulators || buffers.size() + kMostTables > limits_.buffers);
      if (b.work > most_work(limits_) || is_full) break;
      bodies.push_back(body);
    }
    return i;
  }

  static void add_buffers(const LoopBody& body,
                          std::vector<std::pair<LoopLeaf::Kind, uint32_t>>& buffers) {
    const auto add = [&](const LoopLeaf& leaf) {
      const std::pair buffer(leaf.kind, leaf.memory);
      if (std::ranges::find(buffers, buffer) == buffers.end()) buffers.push_back(buffer);
    };
    add(body.target);
    for (const LoopItem& item : body.items) {
      if (item.leaf) add(*item.leaf);
    }
  }

  UOp now(UOp memory) const {
    const auto at = std::ranges::find_if(now_, [&](const auto& p) { return p.first == memory; });
    return at == now_.end() ? memory : at->second;
  }
  void set_now(UOp memory, UOp version) {
    const auto at = std::ranges::find_if(now_, [&](const auto& p) { return p.first == memory; });
    if (at == now_.end()) {
      now_.emplace_back(memory, version);
    } else {
      at->second = version;
    }
  }

  void add_loops(std::span<const LoopStep> steps, StepOrder order) {
    const LoopKernel kernel = loop_kernel(
        program_, steps, order, limits_.sequences ? LoopCounts::kInTables : LoopCounts::kBounded,
        buffers_, device_, result_.tables);
    const uint32_t number = asts_.number(kernel.ast);
    std::vector<UOp> srcs{index_const(arena_, number)};
    for (UOp memory : kernel.memories) srcs.push_back(now(memory));
    const UOp call = arena_.make(Op::KERNEL, dtypes::void_, srcs,
                                 Arg::name(fmt::format("loop_{}", kernel.bodies)));
    for (size_t i = 0; i < asts_.facts(number).written; i++) {
      set_now(kernel.memories[i], after(srcs[i + 1], call));
    }
  }

  // ---- large statements

  void add_graph(const LoopStep& step) {
    const LoopStatement& s = statements_.statements()[step.statement];
    statement_ = &s;
    UOp root = statements_.root_of(s);
    if (root.is(Op::CONTIGUOUS)) root = root.src(0);
    UOp memory, target, store;
    if (s.kind == LoopStatement::Kind::kKept) {
      const LoopKept& k = statements_.kept()[s.number];
      memory = buffers_.slots[k.slots];
      target = part_of_slots(k);
    } else {
      const LoopEvent& e = statements_.events().events()[s.number];
      memory = buffer_of(e.memory);
      target = memory_of(e.memory);
      store = e.store;
      if (store) target = moved(store.src(0), target);
    }
    const UOp value = built(root);
    const std::vector<UOp> srcs{target, value};
    const UOp write =
        store ? arena_.with_srcs(store, srcs) : arena_.make(Op::STORE, dtypes::void_, srcs);
    const UOp sink_of_write = sink(after(memory, write));
    const UOp ranges = run_rangeify_pipeline(toposort(sink_of_write), limits_, device_, nullptr);
    KernelGraph graph =
        run_kernel_split_pipeline(ranges, limits_, device_, nullptr, std::move(asts_));
    asts_ = std::move(graph.asts);
    const UOp made = substitute(graph.sink, now_);
    set_now(memory, made.src(0));
  }

  UOp shaped(UOp memory, UOp like) const {
    const Shape shape = shape_of(like);
    return shape.size() == 1 ? memory : reshape(memory, shape);
  }
  UOp part_of_slots(const LoopKept& k) const { return part_of_slots(k.slots, k.first, k.node); }
  UOp part_of_slots(uint32_t slots, int64_t first, UOp like) const {
    const int64_t count = numel_of(like);
    const std::pair<Dim, Dim> part{first, first + count};
    const UOp memory = buffers_.slots[slots];
    const bool is_all = memory.src(0).const_int() == count;
    return shaped(is_all ? memory : shrink(memory, std::span(&part, 1)), like);
  }
  LoopLeaf place_of_memory(uint32_t memory) const {
    return statements_.place_of_memory(memory,
                                       *Region::whole(statements_.events().memories()[memory]));
  }
  UOp buffer_of(uint32_t memory) const { return buffers_.of(place_of_memory(memory)); }
  UOp memory_of(uint32_t memory) const {
    const LoopLeaf place = place_of_memory(memory);
    const UOp like = statements_.events().memories()[memory];
    if (place.kind == LoopLeaf::Kind::kMemory) return shaped(buffers_.of(place), like);
    return part_of_slots(place.memory, place.region.offset(), like);
  }

  // The target of a STORE on other memory; indices are computed from it, too.
  UOp moved(UOp target, UOp memory) {
    std::vector<UOp> ops;
    UOp base = target;
    while (is_movement(base.op()) || base.is(Op::INDEX)) {
      ops.push_back(base);
      base = base.src(0);
    }
    UOp result = memory;
    for (size_t i = ops.size(); i-- > 0;) {
      std::vector<UOp> srcs(ops[i].srcs().begin(), ops[i].srcs().end());
      srcs[0] = result;
      for (size_t k = 1; k < srcs.size() && ops[i].is(Op::INDEX); k++) srcs[k] = built(srcs[k]);
      result = arena_.with_srcs(ops[i], srcs);
    }
    return result;
  }

  // The value as the statement computes it, of memory as it is then.
  UOp built(UOp root) {
    NodeMap leaves(arena_);
    const auto leaf = [&](UOp n) {
      if (n.is_const() || n.dtype().is_index()) return n;
      return base_now(n);
    };
    const auto result = rebuild_part(
        root, [&](UOp n) { return bool(leaf(n)); },
        [&](UOp n, std::vector<UOp>& srcs) {
          for (size_t i = 0; i < srcs.size(); i++) {
            if (const UOp l = leaf(n.src(i))) srcs[i] = l;
          }
          return arena_.with_srcs(n, srcs);
        });
    if (const UOp l = leaf(root)) return l;
    return result;
  }

  // What stands for n, if the statement does not compute it; null if it does.
  UOp base_now(UOp n) const {
    if (const LoopKept* copy = statements_.copy_for(n, *statement_)) return part_of_slots(*copy);
    const LoopEvents& events = statements_.events();
    if (events.has_memory(n)) return memory_of(events.memory_of(n));
    const LoopKept* k = statements_.kept_value(n);
    if (k == nullptr || statements_.computes(n, *statement_)) return {};
    if (!k->defined_by) return part_of_slots(*k);
    const LoopEvent& e = events.events()[*k->defined_by];
    UOp memory = memory_of(e.memory);
    if (e.store) {
      std::vector<UOp> ops;
      for (UOp t = e.store.src(0); is_movement(t.op()); t = t.src(0)) ops.push_back(t);
      for (size_t i = ops.size(); i-- > 0;) {
        std::vector<UOp> srcs(ops[i].srcs().begin(), ops[i].srcs().end());
        srcs[0] = memory;
        memory = arena_.with_srcs(ops[i], srcs);
      }
    }
    return std::ranges::equal(shape_of(memory), shape_of(n)) ? memory
                                                             : reshape(memory, shape_of(n));
  }

  // ---- outputs

  UOp output(UOp s) {
    const LoopKept* k = statements_.kept_value(s);
    if (k == nullptr) {
      while (s.is(Op::RESHAPE)) s = s.src(0);
      result_.firsts.emplace_back();
      return now(buffers_.memories[statements_.events().memory_of(s)]);
    }
    const bool is_part = statements_.slots()[k->slots].values > 1;
    result_.firsts.push_back(is_part ? std::optional(k->first) : std::nullopt);
    return now(buffers_.slots[k->slots]);
  }

  Arena& arena_;
  const LoopStatements& statements_;
  const LoopProgram& program_;
  const KernelLimits& limits_;
  const std::string& device_;
  LoopBuffers buffers_;
  std::vector<std::pair<UOp, UOp>> now_;  // BUFFERs that have been written, as they are
  KernelTable asts_;
  LoopSchedule result_;
  const LoopStatement* statement_ = nullptr;
};

bool has_known_sizes(std::span<const UOp> order) {
  return std::ranges::all_of(order, [](UOp n) {
    if (n.is(Op::VARIABLE) || n.is(Op::RANGE)) return false;
    return std::ranges::all_of(shape_of(n), [](Dim d) { return d.is_int(); });
  });
}

struct LoopPlan {
  std::unique_ptr<const LoopStatements> statements;
  LoopProgram program;
};

LoopPlan plan_of(std::span<const UOp> order, const LoopEvents& events, OutputMemory outputs,
                 LoopCuts cuts) {
  LoopPlan plan{std::make_unique<const LoopStatements>(order, events, outputs, cuts), {}};
  if (!plan.statements->refusal()) plan.program = loop_program(*plan.statements);
  return plan;
}

// What the first statement computes whose body no other has.
UOp one_of_a_kind(const LoopPlan& plan) {
  std::vector<uint32_t> steps(plan.program.bodies.size());
  for (const LoopStep& s : plan.program.steps) steps[s.body]++;
  const auto is_alone = [&](const LoopStep& s) { return steps[s.body] == 1; };
  const auto at = std::ranges::find_if(plan.program.steps, is_alone);
  const LoopStep& step = at == plan.program.steps.end() ? plan.program.steps[0] : *at;
  return plan.statements->root_of(plan.statements->statements()[step.statement]);
}

}  // namespace

// A graph without writes has as many statements as its sums and its formulas fill, if they are
// small.
bool has_many_statements(std::span<const UOp> order, const KernelLimits& limits) {
  size_t writes = 0, sums = 0, operations = 0;
  double most = 0;
  for (UOp n : order) {
    writes += n.is(Op::STORE) || n.is(Op::PAD) ? 1 : 0;
    sums += n.is(Op::REDUCE_AXIS) ? 1 : 0;
    operations += is_elementwise(n.op()) && !n.dtype().is_index() ? 1 : 0;
  }
  if (writes >= kLeastStatements) return true;
  if (writes + sums + operations / kOperationsOfOne < kLeastStatements) return false;
  if (!has_known_sizes(order)) return false;
  for (UOp n : order) most = std::max(most, double(numel_of(n)));
  return most <= most_work(limits);
}

std::optional<LoopSchedule> run_as_loops(std::span<const UOp> order, const KernelLimits& limits,
                                         const std::string& device, OutputMemory outputs,
                                         LoopRefusal& refusal) {
  const int schedule = config().schedule;
  const bool is_forced = schedule == 2 || schedule > 3;
  if (!is_forced && !has_many_statements(order, limits)) return {};
  std::vector<UOp> rewritten;
  const auto go_on_with = [&](UOp made) {
    if (made == order.back()) return;
    rewritten = toposort(made);
    order = rewritten;
  };
  go_on_with(graph_rewrite(order.back(), early_rules(), {.pass = "early"}));
  if (has_known_sizes(order)) go_on_with(write_sums_of_parts(order, device));
  const UOp sink = order.back();
  const LoopEvents events(order);
  if (events.refusal()) {
    refusal = *events.refusal();
    return {};
  }
  const LoopCuts first = schedule == 4   ? LoopCuts::kAlike
                         : schedule == 5 ? LoopCuts::kAll
                                         : LoopCuts::kLong;
  LoopPlan plan = plan_of(order, events, outputs, first);
  if (plan.statements->refusal()) {
    refusal = *plan.statements->refusal();
    return {};
  }
  for (const LoopCuts cuts : {LoopCuts::kAlike, LoopCuts::kAll}) {
    if (plan.program.bodies.size() <= kManyBodies) break;
    LoopPlan other = plan_of(order, events, outputs, cuts);
    const bool is_better = 2 * other.program.bodies.size() < plan.program.bodies.size();
    if (!other.statements->refusal() && is_better) plan = std::move(other);
  }
  const LoopProgram& program = plan.program;
  const auto is_small = [&](const LoopStep& s) {
    return program.bodies[s.body].work <= most_work(limits);
  };
  const size_t small = size_t(std::ranges::count_if(program.steps, is_small));
  const size_t bodies = program.bodies.size();
  const bool has_writes = !events.events().empty();
  const size_t least = has_writes || bodies <= kManyBodies ? kLeastRepeats : kManyRepeats;
  const bool repeats = small == program.steps.size() && has_writes ? 2 * small >= 3 * bodies
                                                                   : small >= least * bodies;
  const bool pays = small >= kLeastStatements && repeats;
  if (!pays && !is_forced) {
    refusal = {one_of_a_kind(plan),
               fmt::format("{} statements have {} different bodies, such as that of",
                           program.steps.size(), program.bodies.size())};
    return {};
  }
  return Composer(sink, *plan.statements, program, limits, device).run(sink);
}

}  // namespace weft
