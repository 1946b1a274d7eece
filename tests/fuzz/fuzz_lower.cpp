// Kernels of random tensor graphs, lowered to programs, give what the graph gives.
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "codegen/gate_loads.h"
#include "codegen/lower.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/evaluate.h"
#include "ir/print.h"
#include "rewrite/trace.h"
#include "schedule/schedule.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/random_exact_graph.h"
#include "tests/fuzz/random_opts.h"
#include "tests/fuzz/random_tensor_graph.h"
#include "tests/fuzz/run_schedule.h"

using namespace weft;

namespace {

// A device with small workgroups, and few of them.
Target group_target(fuzz::Choices& choices) {
  Target target{.name = "groups"};
  target.groups.threads = 64;
  target.groups.most_threads = {64, 64, 64};
  target.groups.most_groups = {int64_t(choices.below(40)) + 1, 7, 3};
  target.groups.together = choices.below(4) + 1;
  target.vector_arithmetic = false;
  target.narrow_indices = choices.one_in(2);
  target.limits.sequences = false;
  return target;
}

}  // namespace

void fuzz_one(weft::fuzz::Choices& choices) {
  Arena arena;
  const bool is_exact = choices.one_in(2);  // these have symbolic sizes, too
  const auto [sink, buffers] = is_exact ? fuzz::RandomExactGraph(arena, choices).make()
                                        : fuzz::RandomTensorGraph(arena, choices).make();
  Bindings bindings{buffers, {}};
  const std::vector<Array> expected = evaluate(sink, bindings);
  std::vector<Array> got;
  std::string text;
  try {
    const bool has_groups = choices.one_in(2);
    Target target = has_groups ? group_target(choices) : Target{.name = "test"};
    const Schedule schedule = make_schedule(sink, {.limits = target.limits});
    got = test::run_schedule(schedule, buffers, [&](UOp ast) {
      text += "\n" + print(ast);
      const bool may_cut = is_exact || fuzz::is_exact_in_any_order(ast);
      const auto reductions = may_cut ? fuzz::Reductions::kCut : fuzz::Reductions::kLeft;
      if (may_cut) target.sum_block = int64_t(choices.below(5)) + 2;
      const bool is_chosen = has_groups && may_cut && choices.one_in(3);
      const OptList opts = is_chosen
                               ? choose_opts(gate_loads(ast), target)
                               : fuzz::random_opts(ast, choices, reductions,
                                                   {.threads = int64_t(target.groups.threads)});
      text += "\n" + print(opts) + "\n";
      Trace trace;
      UOp linear;
      std::exception_ptr fault;
      try {
        linear = lower(ast, target, opts, &trace);
      } catch (...) {
        fault = std::current_exception();
      }
      for (const TracePass& pass : trace.passes) {
        text += fmt::format("\n{}:\n{}", pass.name, print(pass.after));
      }
      if (fault) std::rethrow_exception(fault);
      return linear;
    });
  } catch (const std::exception& e) {
    throw std::runtime_error(fmt::format("{}\n{}\n{}", e.what(), print(sink), text));
  }
  test::expect_outputs(expected, got, sink, text);
}
