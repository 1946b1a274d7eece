// The main job of `make run`: lazy tensors, views and writes; what they are scheduled to; and what
// they give.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <ratio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "schedule/schedule.h"
#include "weft/weft.h"

namespace {

using namespace weft;

std::string text_of(const Tensor& t) { return fmt::format("{}", fmt::join(t.data<float>(), " ")); }

void versions() {
  fmt::print("Versions: a read sees the past it was made in, a write makes a new present\n\n");
  Tensor a = Tensor::arange(0.0, 6.0);
  const Tensor r = a * 10;
  const Tensor v = a.reshape({2, 3}).transpose();
  a.set({Slice{1, 5, 2}}, 99.0);
  fmt::print("  a = arange(6); r = a*10; v = a.reshape(2,3).T; a[1:5:2] = 99\n");
  fmt::print("  kernels run so far: {}\n", counters().kernels);
  fmt::print("  a  {}\n  r  {}\n  v  {}\n", text_of(a), text_of(r), text_of(v));
}

void loops() {
  fmt::print("\nA loop of setitems is one kernel\n\n");
  constexpr int64_t count = 10'000;
  Tensor a = Tensor::zeros({count});
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 1; i < count; i++) a.set({i}, a.at({i - 1}) + 1.0);
  const auto built = std::chrono::steady_clock::now();
  const size_t kernels = a.kernel_count();
  const auto scheduled = std::chrono::steady_clock::now();
  const auto ms = [](auto d) { return std::chrono::duration<double, std::milli>(d).count(); };
  fmt::print("  a = zeros({0}); for i in 1..{0}: a[i] = a[i-1] + 1\n", count);
  fmt::print("  built in {:.1f} ms, scheduled in {:.1f} ms: {} kernel; a[-1] is {}\n",
             ms(built - start), ms(scheduled - built), kernels, a.at({count - 1}).item<float>());
}

// e = exp(x); e / e.sum(axis=1, keepdim=True), of four rows of three.
UOp row_shares(Arena& arena) {
  const std::vector<Dim> rows{4, 3};
  const std::vector<int64_t> axis{1};
  const UOp x = reshape(buffer(arena, dtypes::float32, 12, "CPU", 0), rows);
  const UOp e = unary(Op::EXP, x);
  return sink(contiguous(binary(Op::FDIV, e, expand(reduce_axis(Op::ADD, e, axis), rows))));
}

void kernels() {
  fmt::print("\nFrom a tensor graph to a kernel (docs/walk.md has every phase)\n\n");
  Arena arena;
  const UOp graph = row_shares(arena);
  fmt::print("  {}\n", short_form(graph, 1000));
  const Schedule schedule = make_schedule(graph);
  for (const KernelCall& call : schedule.calls) {
    fmt::print("  {}: {}\n", call.name, short_form(call.ast, 1000));
  }
}

}  // namespace

int main() {
  try {
    versions();
    loops();
    kernels();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
