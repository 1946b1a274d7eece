// The main job of `make run`: lazy tensors, views and writes; what they are scheduled to; the
// source of a kernel; and what they give.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "codegen/lower.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "render/render.h"
#include "runtime/cpu/host_cpu.h"
#include "runtime/cpu/parallel.h"
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

double ms_since(uint64_t start) { return double(now_ns() - start) * 1e-6; }

std::string indented(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += fmt::format("    {}\n", text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// The same kernel for both compilers, whichever is installed.
void sources(const ScheduledKernel& kernel) {
  const auto lowered = [&](Arena& arena, Target target) {
    describe_host(target);
    return lower(parse(arena, kernel.graph), target);
  };
  Arena arena;
  fmt::print("\n  {} in C:\n\n{}", kernel.name,
             indented(render_c(lowered(arena, c_target()), kernel.name)));
  fmt::print("\n  and in LLVM IR:\n\n{}",
             indented(render_llvm(lowered(arena, llvm_target()), kernel.name)));
}

void loops() {
  fmt::print("\nA loop of setitems is one kernel\n\n");
  constexpr int64_t count = 10'000;
  Tensor a = Tensor::zeros({count});
  uint64_t start = now_ns();
  for (int64_t i = 1; i < count; i++) a.set({i}, a.at({i - 1}) + 1.0);
  const double build_ms = ms_since(start);
  start = now_ns();
  const size_t kernels = a.kernel_count();
  const double schedule_ms = ms_since(start);
  const ScheduledKernel kernel = a.schedule().front();
  fmt::print("  a = zeros({0}); for i in 1..{0}: a[i] = a[i-1] + 1\n", count);
  fmt::print("  built in {:.1f} ms, scheduled in {:.1f} ms: {} kernel; a[-1] is {}\n", build_ms,
             schedule_ms, kernels, a.at({count - 1}).item<float>());
  sources(kernel);
}

void matmul() {
  constexpr int64_t n = 1024;
  constexpr int repeats = 20;
  const Tensor x = (Tensor::arange(0.0, double(n * n)).reshape({n, n}) * 1e-6).realize();
  const Tensor y = Tensor::full({n, n}, 0.5).realize();
  uint64_t start = now_ns();
  Tensor product = x.matmul(y).realize();
  const double first_ms = ms_since(start);
  double least_ms = first_ms;
  for (int i = 0; i < repeats; i++) {
    start = now_ns();
    product = x.matmul(y).realize();
    least_ms = std::min(least_ms, ms_since(start));
  }
  fmt::print("\nA matmul of {0}x{0} on {1}, {2} threads\n\n", n, default_device(),
             parallel_threads());
  fmt::print("  compiled and run in {:.1f} ms; then {:.2f} ms, the least of {}: {:.0f} GFLOP/s\n",
             first_ms, least_ms, repeats,
             2.0 * double(n) * double(n) * double(n) / least_ms * 1e-6);
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

// Whether kernels are compiled. Without a compiler all runs on the reference evaluator.
bool has_compiler() {
  try {
    Tensor::zeros({1}).realize();
    reset_counters();
    return default_device().starts_with("CPU");
  } catch (const DeviceError& error) {
    fmt::print("{}\nThis is shown on the reference evaluator, without the matmul.\n\n",
               error.what());
    set_default_device("REF");
    return false;
  }
}

}  // namespace

int main() {
  try {
    const bool compiled = has_compiler();
    versions();
    loops();
    kernels();
    if (compiled) matmul();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
