// Random formulas of rows, scheduled for a machine with small caches, so that reductions that
// depend on each other are merged, give what the formulas give in float64: as kernels, and as
// programs.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "codegen/lower.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "schedule/machine.h"
#include "schedule/schedule.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/random_rows.h"
#include "tests/fuzz/run_schedule.h"

namespace weft {
namespace {

// Nothing stays near, and memory is slow.
Machine small_machine(fuzz::Choices& choices) {
  Machine m;
  m.level_count = 3;
  m.levels = {{{double(size_t(8) << choices.below(6)), 100, 100, false},
               {double(size_t(1) << (10 + choices.below(6))), 50, 50, false},
               {1e15, 0.1, 0.1, true}}};
  m.launch_ns = 100;
  return m;
}

bool is_near(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * (1 + std::abs(b));
}

void expect_near(const std::vector<Array>& expected, const std::vector<Array>& got,
                 double tolerance) {
  for (size_t i = 0; i < expected.size(); i++) {
    const std::vector<double> a = got[i].doubles(), b = expected[i].doubles();
    for (size_t k = 0; k < b.size(); k++) {
      if (is_near(a[k], b[k], tolerance)) continue;
      throw std::runtime_error(
          fmt::format("element {} of output {} is {} and not {}", k, i, a[k], b[k]));
    }
  }
}

size_t merged_kernels(const Schedule& schedule) {
  return size_t(std::ranges::count_if(schedule.calls, [](const KernelCall& call) {
    return std::ranges::any_of(toposort(call.ast), [](UOp n) { return n.is(Op::DEFINE_LOCAL); });
  }));
}

}  // namespace
}  // namespace weft

void fuzz_one(weft::fuzz::Choices& choices) {
  using namespace weft;
  Arena arena;
  const DType type = choices.one_in(2) ? dtypes::float32 : dtypes::float64;
  const uint64_t seed = choices.bits();
  fuzz::Choices first(seed), second(seed);
  fuzz::RandomRows generator(arena, first, type), exact(arena, second, dtypes::float64);
  const UOp sink = generator.make(), in_double = exact.make();
  Bindings bindings{exact.buffers(dtypes::float64), {}};
  const std::vector<Array> expected = evaluate(in_double, bindings);
  ScheduleOptions options;
  options.limits.machine = small_machine(choices);
  const double tolerance = type == dtypes::float32 ? 2e-4 : 1e-10;
  std::string text;
  try {
    const Schedule schedule = make_schedule(sink, options);
    text = test::describe(schedule);
    const std::map<int64_t, Array> buffers = generator.buffers(type);
    expect_near(expected, test::run_schedule(schedule, buffers), tolerance);
    if (merged_kernels(schedule) == 0) return;
    text += "\nas programs:\n";
    Target target{.name = "test", .cores = 1 + choices.below(3)};
    expect_near(expected,
                test::run_schedule(schedule, buffers, [&](UOp ast) { return lower(ast, target); }),
                tolerance);
  } catch (const std::exception& e) {
    throw std::runtime_error(fmt::format("{}\n{}\n{}", e.what(), print(sink), text));
  }
}
