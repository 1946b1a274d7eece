// Random kernels with random optimisations, compiled and run, give exactly what the kernels give
// without: a case is many kernels of one compilation, by LLVM mostly, in C every tenth time. Where
// WEFT_DEVICE is a device with workgroups, a case is one graph's kernels, each a program of its
// own.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "rewrite/pattern.h"
#include "runtime/cpu/cpu_toolchain.h"
#include "runtime/device.h"
#include "schedule/schedule.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/kernel_cases.h"
#include "tests/fuzz/random_exact_graph.h"
#include "tests/fuzz/random_opts.h"
#include "tests/fuzz/random_tensor_graph.h"
#include "tests/kernel_batch.h"

namespace {

using namespace weft;

constexpr size_t kKernels = 50;  // of one compilation
constexpr int64_t kCopies = 96;  // of a loop's body: larger ones take long to compile

class Batch {
 public:
  Batch(Toolchain toolchain, fuzz::Choices& choices)
      : choices_(choices), batch_(toolchain), is_llvm_(toolchain == Toolchain::kLlvm) {}
  Batch(Device& device, fuzz::Choices& choices)
      : choices_(choices),
        batch_(device),
        limits_(device.limits()),
        missing_(device.missing_dtypes()),
        threads_(int64_t(device.target()->groups.threads)) {}

  void run(size_t least) {
    while (cases_.size() < least) add_graph();
    batch_.compile();
    for (size_t i = 0; i < cases_.size(); i++) check(i);
  }

 private:
  struct Case {
    test::KernelCase kernel;
    std::string text;  // the kernel and its optimisations
    int64_t cut;       // of the loop over threads
  };

  void add_graph() {
    Arena arena;
    const bool is_exact = !choices_.one_in(3);
    const auto [sink, buffers] = is_exact ? fuzz::RandomExactGraph(arena, choices_).make()
                                          : fuzz::RandomTensorGraph(arena, choices_).make();
    for (test::KernelCase& kernel : test::kernel_cases(sink, buffers, limits_)) {
      if (cases_.size() == kKernels) return;
      const UOp ast = kernel.ast;
      if (reads_missing(ast)) continue;
      add_kernel(std::move(kernel), is_exact || fuzz::is_exact_in_any_order(ast));
    }
  }

  bool reads_missing(UOp ast) const {
    return missing_ != 0 && std::ranges::any_of(toposort(ast), [&](UOp n) {
             return (missing_ & set_of(n.dtype().scalar)) != 0;
           });
  }

  void add_kernel(test::KernelCase kernel, bool is_exact) {
    const auto reductions = is_exact ? fuzz::Reductions::kCut : fuzz::Reductions::kLeft;
    const OptList opts =
        fuzz::random_opts(kernel.ast, choices_, reductions, {kCopies, is_llvm_, threads_});
    const std::string text = fmt::format("{}\n{}", print(kernel.ast), print(opts));
    try {
      batch_.add(kernel.ast, opts);
    } catch (const std::exception& e) {
      throw std::runtime_error(fmt::format("{}\n{}", e.what(), text));
    }
    cases_.push_back({std::move(kernel), text, int64_t(choices_.below(4))});
  }

  void check(size_t i) const {
    const auto& [kernel, text, cut] = cases_[i];
    std::string fault;
    try {
      fault = test::difference(kernel.after, batch_.run(i, kernel.before, kernel.variables, cut));
    } catch (const std::exception& e) {
      fault = e.what();
    }
    if (!fault.empty()) {
      throw std::runtime_error(
          fmt::format("kernel {}{}: {}\n{}", i, is_llvm_ ? "" : " in C", fault, text));
    }
  }

  fuzz::Choices& choices_;
  test::KernelBatch batch_;
  bool is_llvm_ = true;
  KernelLimits limits_;
  DTypeSet missing_ = 0;  // dtypes that the device lacks
  int64_t threads_ = 0;
  std::vector<Case> cases_;
};

}  // namespace

void fuzz_one(weft::fuzz::Choices& choices) {
  if (Device& device = find_device({}); device.target() != nullptr) {
    Batch(device, choices).run(1);
    return;
  }
  const bool is_c = choices.one_in(10);
  const Toolchain wanted = is_c ? Toolchain::kC : Toolchain::kLlvm;
  const Toolchain other = is_c ? Toolchain::kLlvm : Toolchain::kC;
  if (!is_installed(wanted) && !is_installed(other)) {
    throw DeviceError("[fuzz_kernels] there is neither LLVM nor a C compiler");
  }
  Batch(is_installed(wanted) ? wanted : other, choices).run(kKernels);
}
