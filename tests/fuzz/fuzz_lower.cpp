// Kernels of random tensor graphs, lowered to programs, give what the graph gives.
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "codegen/lower.h"
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
#include "tests/fuzz/random_opts.h"
#include "tests/fuzz/random_tensor_graph.h"
#include "tests/fuzz/run_schedule.h"

using namespace weft;

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
      const OptList opts = fuzz::random_opts(
          ast, choices,
          fuzz::is_exact_in_any_order(ast) ? fuzz::Reductions::kCut : fuzz::Reductions::kLeft);
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
  test::expect_outputs(expected, got, sink, text);
}
