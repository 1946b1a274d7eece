// The main job of `make run`: an expression graph is built, simplified with its match statistics,
// and verified.
#include <cstddef>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include "base/config.h"
#include "base/error.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/evaluate.h"
#include "ir/print.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "rewrite/statistics.h"
#include "rewrite/trace.h"
#include "symbolic/simplify.h"

namespace {

using namespace weft;

// out[i, j] = in[j, i] + in[j, i], where the indices went through two reshapes and a permute.
UOp transpose_kernel(Arena& a) {
  const UOp in = define_global(a, dtypes::float32, 128, 1),
            out = define_global(a, dtypes::float32, 128, 0);
  const UOp i = range(a, 16, 0), j = range(a, 8, 1);
  const UOp flat = i * 8 + j;                                                // (16, 8)
  const UOp row = flat % 8, column = flat / 8 % 16;                          // permuted to (8, 16)
  const UOp source = (row * 16 + column) / 4 * 4 + (row * 16 + column) % 4;  // through (32, 4)
  const UOp inside = source < 128;  // the gate that a PAD leaves behind
  const UOp value = where(inside, load(index(in, source)), constant(a, dtypes::float32, 0.0));
  const UOp loops[] = {i, j};
  return sink(end(index(out, flat).assign(value + value), loops));
}

void show(const char* title, UOp root) {
  fmt::print("\n{} ({})\n{}", title, summarize(root).text(), print(root));
}

void run() {
  Arena arena;
  const UOp kernel = transpose_kernel(arena);
  show("A kernel", kernel);
  verify(kernel, Stage::kKernel);

  config().stats = 1;
  Trace trace;
  const UOp simple = simplify(kernel, &trace);
  config().stats = 0;
  show("Simplified", simple);
  verify(simple, Stage::kKernel, "simplify");

  fmt::print("\nSteps\n{}", trace.text());
  std::vector<RuleStatistic> statistics = rule_statistics();
  for (RuleStatistic& s : statistics) s.file = s.file.substr(s.file.find_last_of('/') + 1);
  fmt::print("\nRules tried\n{}", text_of(statistics));
  reset_rule_statistics();

  std::vector<double> numbers(128);
  for (size_t k = 0; k < numbers.size(); k++) numbers[k] = double(k);
  auto result_of = [&](UOp root) {
    Bindings bindings;
    bindings.buffers[0] = Array::zeros(dtypes::float32, {128});
    bindings.buffers[1] = Array::of_doubles(dtypes::float32, {128}, numbers);
    evaluate(root, bindings);
    return bindings.buffers[0].data;
  };
  if (result_of(kernel) != result_of(simple)) throw Error("the two graphs differ");
  fmt::print(
      "\nBoth graphs pass the spec of the kernel stage and compute the same 128 elements.\n");
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
