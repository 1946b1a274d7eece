// Kernels of random tensor graphs, lowered to programs, give what the graph gives.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "codegen/gate_loads.h"
#include "codegen/lower.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/evaluate.h"
#include "ir/print.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "rewrite/trace.h"
#include "schedule/schedule.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/random_tensor_graph.h"
#include "tests/fuzz/run_schedule.h"

namespace {

using namespace weft;

// Sums of floats depend on their order, which some optimisations change.
bool is_exact_in_any_order(UOp ast) {
  const std::vector<UOp> order = toposort(ast);
  return std::ranges::none_of(order, [](UOp n) {
    return n.is(Op::REDUCE) && n.dtype().is_float() && n.arg_op() != Op::MAX && n.arg_op() != Op::MIN;
  });
}

// Optimisations that apply, found by trying.
OptList random_opts(UOp ast, fuzz::Choices& choices) {
  constexpr std::array amounts = {1, 2, 3, 4, 5, 7, 8, 16};
  OptList opts;
  UOp at = mark_parallel_loops(gate_loads(ast));
  for (size_t tries = choices.below(8); tries > 0; tries--) {
    const Opt opt{OptKind(choices.below(8)), int64_t(choices.below(6)),
                  choices.one_in(5) ? int64_t(choices.below(6)) : amounts[choices.below(amounts.size())]};
    if (!why_not(at, opt).empty()) continue;
    if (opt.kind != OptKind::kStage && range_by_id(at, opt.axis).axis() == AxisType::kReduce &&
        !is_exact_in_any_order(ast)) {
      continue;
    }
    opts.push_back(opt);
    at = apply_opt(at, opt);
    verify(at, Stage::kKernel);
  }
  return opts;
}

}  // namespace

void fuzz_one(weft::fuzz::Choices& choices) {
  Arena arena;
  fuzz::RandomTensorGraph generator(arena, choices);
  const auto [sink, buffers] = generator.make();
  Bindings bindings{buffers, {}};
  const std::vector<Array> expected = evaluate(sink, bindings);
  std::vector<Array> got;
  std::string text;
  try {
    const Schedule schedule = make_schedule(sink);
    got = test::run_schedule(schedule, buffers, [&](UOp ast) {
      text += "\n" + print(ast);
      const OptList opts = random_opts(ast, choices);
      text += "\n" + print(opts) + "\n";
      Trace trace;
      const UOp linear = lower(ast, Target{.name = "test"}, opts, &trace);
      for (const TracePass& pass : trace.passes) {
        text += fmt::format("\n{}:\n{}", pass.name, print(pass.after));
      }
      return linear;
    });
  } catch (const std::exception& e) {
    throw std::runtime_error(fmt::format("{}\n{}\n{}", e.what(), print(sink), text));
  }
  for (size_t i = 0; i < expected.size(); i++) {
    if (expected[i].data == got[i].data) continue;
    throw std::runtime_error(fmt::format("output {} is\n  {}\nand not\n  {}\n{}\n{}", i,
                                         got[i].text(), expected[i].text(), print(sink), text));
  }
}
