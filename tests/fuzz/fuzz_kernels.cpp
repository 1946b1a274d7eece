// Random kernels with random optimisations, compiled and run, give exactly what the kernels give
// without: a case is many kernels of one compilation, by LLVM mostly, in C every tenth time.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/opt/opt.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/print.h"
#include "ir/scalar.h"
#include "runtime/cpu/cpu_toolchain.h"
#include "schedule/schedule.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/random_exact_graph.h"
#include "tests/fuzz/random_opts.h"
#include "tests/fuzz/random_tensor_graph.h"
#include "tests/fuzz/run_schedule.h"
#include "tests/kernel_batch.h"

namespace {

using namespace weft;

constexpr size_t kKernels = 50;  // of one compilation
constexpr int64_t kCopies = 96;  // of a loop's body: larger ones take long to compile

struct Case {
  std::string text;  // the kernel and its optimisations
  std::map<std::string, int64_t> variables{};
  test::Arrays before{}, after{};
  int64_t cut = 0;
};

class Batch {
 public:
  Batch(Toolchain toolchain, fuzz::Choices& choices)
      : choices_(choices), batch_(toolchain), is_llvm_(toolchain == Toolchain::kLlvm) {}

  void run() {
    while (cases_.size() < kKernels) add_graph();
    batch_.compile();
    for (size_t i = 0; i < cases_.size(); i++) check(i);
  }

 private:
  void add_graph() {
    auto arena = std::make_shared<Arena>();
    if (choices_.one_in(3)) {
      const auto [sink, buffers] = fuzz::RandomTensorGraph(*arena, choices_).make();
      add_kernels(sink, buffers, false);
    } else {
      const auto [sink, buffers] = fuzz::RandomExactGraph(*arena, choices_).make();
      add_kernels(sink, buffers, true);
    }
  }

  void add_kernels(UOp sink, const std::map<int64_t, Array>& inputs, bool is_exact) {
    const Schedule s = make_schedule(sink);
    std::vector<std::vector<uint64_t>> slots = test::memory_of(s, inputs);
    for (const KernelCall& call : s.calls) {
      if (cases_.size() == kKernels) return;
      arenas_.push_back(std::make_unique<Arena>());
      const UOp ast = test::with_shared_memory(*arenas_.back(), s, call);
      Bindings bindings = test::bindings_of(s, call, slots);
      Case c{.text = print(ast), .variables = bindings.variables, .before = bindings.buffers};
      evaluate(ast, bindings);
      c.after = bindings.buffers;
      test::keep_written(s, call, bindings, slots);
      add_kernel(ast, std::move(c), is_exact || fuzz::is_exact_in_any_order(ast));
    }
  }

  void add_kernel(UOp ast, Case c, bool is_exact) {
    const auto reductions = is_exact ? fuzz::Reductions::kCut : fuzz::Reductions::kLeft;
    const OptList opts = fuzz::random_opts(ast, choices_, reductions, {kCopies, is_llvm_});
    c.text += "\n" + print(opts);
    c.cut = int64_t(choices_.below(4));
    try {
      batch_.add(ast, opts);
    } catch (const std::exception& e) {
      throw std::runtime_error(fmt::format("{}\n{}", e.what(), c.text));
    }
    cases_.push_back(std::move(c));
  }

  void check(size_t i) const {
    const Case& c = cases_[i];
    const test::Arrays got = batch_.run(i, c.before, c.variables, c.cut);
    for (const auto& [id, expected] : c.after) {
      const Array& array = got.at(id);
      for (size_t k = 0; k < expected.data.size(); k++) {
        if (array.data[k] == expected.data[k] || both_are_nan(array, expected, k)) continue;
        throw std::runtime_error(fmt::format("kernel {}: argument {} is\n  {}\nand not\n  {}\n{}",
                                             i, id, array.text(), expected.text(), c.text));
      }
    }
  }
  static bool both_are_nan(const Array& a, const Array& b, size_t k) {
    return a.dtype.is_float() && std::isnan(double_of_bits(a.dtype, a.data[k])) &&
           std::isnan(double_of_bits(b.dtype, b.data[k]));
  }

  fuzz::Choices& choices_;
  test::KernelBatch batch_;
  bool is_llvm_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<Case> cases_;
};

}  // namespace

void fuzz_one(weft::fuzz::Choices& choices) {
  const bool is_c = choices.one_in(10);
  const Toolchain wanted = is_c ? Toolchain::kC : Toolchain::kLlvm;
  const Toolchain other = is_c ? Toolchain::kLlvm : Toolchain::kC;
  if (!is_installed(wanted) && !is_installed(other)) {
    throw DeviceError("[fuzz_kernels] there is neither LLVM nor a C compiler");
  }
  Batch(is_installed(wanted) ? wanted : other, choices).run();
}
