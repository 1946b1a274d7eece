// Random tensor graphs, scheduled and run kernel by kernel, give what the evaluator gives on the
// graph as it was.
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/evaluate.h"
#include "ir/print.h"
#include "schedule/schedule.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/random_tensor_graph.h"
#include "tests/fuzz/run_schedule.h"

void fuzz_one(weft::fuzz::Choices& choices) {
  using namespace weft;
  Arena arena;
  fuzz::RandomTensorGraph generator(arena, choices);
  const auto [sink, buffers] = generator.make();
  Bindings bindings{buffers, {}};
  const std::vector<Array> expected = evaluate(sink, bindings);
  ScheduleOptions options;
  for (const auto& [id, array] : buffers) {
    if (choices.one_in(2)) options.dying.push_back(id);
  }
  if (choices.one_in(3)) {
    options.limits = {.statements = 1 + choices.below(4),
                      .buffers = 8 + choices.below(5),
                      .writes = 1 + choices.below(4),
                      .accumulators = 1 + choices.below(4)};
  }
  if (choices.one_in(4)) options.limits.sequences = false;
  std::vector<Array> got;
  std::string text;
  try {
    const Schedule schedule = make_schedule(sink, options);
    text = test::describe(schedule);
    for (const KernelCall& call : schedule.calls) {
      if (call.arguments.size() > options.limits.buffers) throw Error("too many buffers");
    }
    got = test::run_schedule(schedule, buffers);
  } catch (const std::exception& e) {
    throw std::runtime_error(fmt::format("{}\n{}\n{}", e.what(), print(sink), text));
  }
  test::expect_outputs(expected, got, sink, text);
}
