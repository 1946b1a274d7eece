// Schedules of random reductions do not do more work than the graph: no reduction takes in an
// element twice, and all operations and accesses are at most 1.5 times those of a kernel for each
// node, and what a launch is worth. Small ones are run, too, and give what the evaluator gives.
#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/bounds.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "runtime/loop_nest.h"
#include "schedule/machine.h"
#include "schedule/rangeify/buffer_cost.h"
#include "schedule/schedule.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/random_reductions.h"
#include "tests/fuzz/run_schedule.h"

namespace weft {
namespace {

struct Counted {
  double taken_in = 0;  // by reductions
  double work = 0;      // operations and accesses
};

Counted of_kernel(UOp ast) {
  const std::vector<UOp> order = toposort(ast);
  const LoopNest nest(order);
  Counted out;
  for (UOp n : order) {
    const bool is_access = n.is(Op::LOAD) || n.is(Op::STORE);
    const bool is_arithmetic =
        is_elementwise(n.op()) && !n.dtype().is_index() && !n.dtype().is_bool();
    if (!is_access && !is_arithmetic && !n.is(Op::REDUCE)) continue;
    double count = 1;
    for (UOp r : nest.around(n)) count *= double(bounds(r.src(0)).hi);
    out.work += count * (is_arithmetic ? weight_of(n.op()) : 1);
    if (n.is(Op::REDUCE)) out.taken_in += count;
  }
  return out;
}

Counted of_graph(UOp sink) {
  Counted out;
  const auto elements = [](UOp n) {
    double count = 1;
    for (const Dim size : shape_of(n)) count *= double(size.value());
    return count;
  };
  for (UOp n : toposort(sink)) {
    if (n.dtype().is_index() || n.dtype().is_void()) continue;
    if (n.is(Op::REDUCE_AXIS)) {
      out.taken_in += elements(n.src(0));
      out.work += 2 * elements(n.src(0)) + elements(n);
    } else if (is_elementwise(n.op())) {
      const auto reads = std::ranges::count_if(n.srcs(), [](UOp s) { return !s.is_const(); });
      out.work += elements(n) * (weight_of(n.op()) + double(reads) + 1);
    } else if (n.is(Op::CONTIGUOUS) || n.is(Op::PAD)) {
      out.work += 2 * elements(n);
    }
  }
  return out;
}

void check(UOp sink, const ScheduleOptions& options, const Schedule& schedule) {
  Counted done;
  for (const KernelCall& call : schedule.calls) {
    const Counted one = of_kernel(call.ast);
    done.taken_in += one.taken_in;
    done.work += one.work;
  }
  const Counted given = of_graph(sink);
  // The second step of a large reduction takes in the results of the first.
  const double more = options.limits.pieces > 1 ? 1.07 : 1;
  if (done.taken_in > given.taken_in * more) {
    throw std::runtime_error(fmt::format("reductions take in {} elements, and {} in the graph",
                                         done.taken_in, given.taken_in));
  }
  const Machine& machine = options.limits.machine;
  const double small = machine.launch_ns * machine.operations_per_ns;  // of each kernel
  if (done.work > cost::kMostWork * given.work + small * double(schedule.calls.size())) {
    throw std::runtime_error(fmt::format("{} operations and accesses, and {} of all nodes alone",
                                         done.work, given.work));
  }
}

}  // namespace
}  // namespace weft

void fuzz_one(weft::fuzz::Choices& choices) {
  using namespace weft;
  Arena arena;
  const bool is_run = choices.one_in(2);
  const DType type = is_run ? dtypes::int32 : dtypes::float32;
  fuzz::RandomReductions generator(arena, choices, is_run ? 60 : choices.between(100, 10'000'000),
                                   type);
  const UOp sink = generator.make();
  ScheduleOptions options;
  if (choices.one_in(2)) options.limits.pieces = 1 + choices.below(32);
  std::string text;
  try {
    const Schedule schedule = make_schedule(sink, options);
    text = test::describe(schedule);
    check(sink, options, schedule);
    if (!is_run) return;
    Bindings bindings{generator.buffers(), {}};
    const std::vector<Array> expected = evaluate(sink, bindings);
    const std::vector<Array> got = test::run_schedule(schedule, generator.buffers());
    test::expect_outputs(expected, got, sink, text);
  } catch (const std::exception& e) {
    throw std::runtime_error(fmt::format("{}\n{}\n{}", e.what(), print(sink), text));
  }
}
