// Kernels of random tensor graphs, lowered to programs, give what the graph gives.
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "codegen/lower.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/evaluate.h"
#include "ir/print.h"
#include "ir/spec.h"
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
  std::vector<Array> got;
  std::string text;
  try {
    const Schedule schedule = make_schedule(sink);
    got = test::run_schedule(schedule, buffers, [&](UOp ast) {
      text = print(ast);
      const UOp linear = lower(ast, Target{.name = "test"});
      text += "\n" + print(linear);
      verify(linear, Stage::kProgram);
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
