// Threads in workgroups, workgroups one after the other, kernels inside graphs.
#include "ir/evaluate_machine.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/array.h"
#include "ir/evaluate_memory.h"
#include "ir/evaluate_parts.h"
#include "ir/evaluate_plan.h"
#include "ir/evaluate_thread.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft::evaluator {
namespace {

// The SPECIALs of one kind, by name, and their sizes.
struct Grid {
  std::vector<UOp> specials;
  std::vector<int64_t> sizes;
};

enum class GridKind : uint8_t { kGroups, kThreads };

Grid grid_of(const Plan& plan, GridKind kind, const Variables& variables) {
  Grid grid;
  for (const Step& step : plan.steps) {
    if (!step.node.is(Op::SPECIAL)) continue;
    const bool is_local = step.node.name().starts_with('l');
    if (is_local == (kind == GridKind::kThreads)) grid.specials.push_back(step.node);
  }
  std::sort(grid.specials.begin(), grid.specials.end(), [](UOp a, UOp b) {
    return a.name() != b.name() ? a.name() < b.name() : a.id() < b.id();
  });
  grid.specials.erase(std::unique(grid.specials.begin(), grid.specials.end()), grid.specials.end());
  for (size_t i = 0; i < grid.specials.size(); i++) {
    const UOp s = grid.specials[i];
    if (i > 0 && s.name() == grid.specials[i - 1].name()) fail(s, "its name has two sizes");
    grid.sizes.push_back(evaluate_size(s.src(0), variables));
  }
  return grid;
}

std::vector<std::vector<int64_t>> points_of(const Grid& grid) {
  std::vector<std::vector<int64_t>> points;
  if (size_of(grid.sizes) == 0) return points;
  std::vector<int64_t> at(grid.sizes.size(), 0);
  do points.push_back(at);
  while (advance(at, grid.sizes));
  return points;
}

// Every thread to its next barrier, again and again.
void run_threads(std::deque<Thread>& threads) {
  for (UOp barrier = {};; barrier = {}) {
    size_t waiting = 0;
    for (Thread& t : threads) {
      const UOp reached = t.run_to_barrier();
      if (!reached) continue;
      if (barrier && barrier != reached) fail(reached, "another thread is at another BARRIER");
      barrier = reached;
      waiting++;
    }
    if (waiting == 0) return;
    if (waiting != threads.size()) fail(barrier, "not every thread of the workgroup reaches it");
  }
}

void run_kernel(UOp kernel, const std::vector<const Value*>& sources, Heap& heap,
                Variables variables) {
  Arguments arguments;
  std::deque<Memory> scalars;
  for (size_t i = 1; i < sources.size(); i++) {
    const UOp argument = kernel.src(i);
    if (sources[i]->kind == Value::kArray || sources[i]->kind == Value::kPointer) {
      arguments[int64_t(i) - 1] = sources[i]->place.memory;
      continue;
    }
    const uint64_t bits = sources[i]->lanes.at(0).bits;
    if (argument.is(Op::BIND) || argument.is(Op::VARIABLE)) {
      const UOp variable = argument.is(Op::BIND) ? argument.src(0) : argument;
      variables[std::string(variable.name())] = int64_t(bits);
    }
    Memory& memory = scalars.emplace_back();
    memory.own = Array::scalar(argument.dtype(), bits);
    memory.array = &memory.own;
    arguments[int64_t(i) - 1] = &memory;
  }
  const UOp ast = kernel.src(0);
  const std::span<const UOp> roots = ast.is(Op::SINK) ? ast.srcs() : std::span(&ast, 1);
  run(ast.is(Op::LINEAR) ? plan_list(ast) : plan_graph(roots), heap, variables, &arguments);
}

}  // namespace

std::vector<Array> run(const Plan& plan, Heap& heap, const Variables& variables,
                       const Arguments* arguments) {
  const Grid groups = grid_of(plan, GridKind::kGroups, variables);
  const Grid threads = grid_of(plan, GridKind::kThreads, variables);
  std::vector<Array> results(plan.roots.size(), Array::nothing());
  for (const std::vector<int64_t>& group_at : points_of(groups)) {
    Workgroup group{plan, heap, variables, arguments, {}, {}, {}};
    group.run_kernel = [&](UOp kernel, const std::vector<const Value*>& sources) {
      if (arguments != nullptr) fail(kernel, "it is inside a KERNEL");
      run_kernel(kernel, sources, heap, variables);
    };
    std::deque<Thread> running;
    for (const std::vector<int64_t>& thread_at : points_of(threads)) {
      std::vector<std::pair<UOp, int64_t>> specials;
      specials.reserve(group_at.size() + thread_at.size());
      for (size_t i = 0; i < group_at.size(); i++) {
        specials.emplace_back(groups.specials[i], group_at[i]);
      }
      for (size_t i = 0; i < thread_at.size(); i++) {
        specials.emplace_back(threads.specials[i], thread_at[i]);
      }
      size_t number = 0, step = 1;
      for (size_t i = 0; i < thread_at.size(); i++) {
        number += size_t(thread_at[i]) * step;
        step *= size_t(threads.sizes[i]);
      }
      running.emplace_back(group, std::move(specials), number);
      group.threads.resize(std::max(group.threads.size(), number + 1));
      group.threads[number] = &running.back();
    }
    run_threads(running);
    for (size_t i = 0; i < results.size() && !running.empty(); i++) {
      results[i] = running.back().result(i);
    }
  }
  return results;
}

}  // namespace weft::evaluator
