// Operators that weft has no kernel for.
#include "fallback.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "complex_kernels.h"
#include "counters.h"
#include "generator.h"
#include "on_cpu.h"

namespace weft::pytorch {
namespace {

std::atomic<Fallbacks> allowed = Fallbacks::kAllowed;
std::atomic<bool> warns = false;

struct Decomposer {
  std::mutex mutex;
  std::function<void()> run;
  std::atomic<bool> has_run = true;
};
Decomposer& decomposer() {
  static auto* const kDecomposer = new Decomposer;
  return *kDecomposer;
}

// Whether the decomposer ran just now. Operators that other threads meet meanwhile fall back.
bool decompose_now() {
  Decomposer& d = decomposer();
  if (d.has_run) return false;
  std::function<void()> run;
  {
    const std::lock_guard lock(d.mutex);
    run = std::exchange(d.run, nullptr);
  }
  if (run) run();  // without the lock: it runs Python
  d.has_run = true;
  return bool(run);
}

std::string name_of(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  const std::string base = name.name.starts_with("aten::") ? name.name.substr(6) : name.name;
  return name.overload_name.empty() ? base : base + "." + name.overload_name;
}

void warn_once(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> warned;
  {
    const std::lock_guard lock(mutex);
    if (!warned.insert(name).second) return;
  }
  TORCH_WARN("weft: ", name, " is done by PyTorch's CPU kernel");
}

// Generators of the device cannot be given to a CPU kernel: one of the CPU that goes on from the
// same state takes their place.
void replace_generators(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  const size_t first = stack.size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); i++) {
    if (arguments[i].type()->str().find("Generator") == std::string::npos) continue;
    c10::IValue& value = stack[first + i];
    value = cpu_generator_from(value.isNone() ? default_generator() : value.toGenerator());
  }
}

void decompose_or_fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (decompose_now()) {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), stack);
  } else {
    fall_back(op, stack);
  }
}

}  // namespace

void set_fallbacks(Fallbacks a) { allowed = a; }
void set_fallback_warnings(bool warn) { warns = warn; }

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = name_of(op);
  if (!writes_repeated_elements(op, *stack) && call_complex_kernel(op, name, stack)) return;
  TORCH_CHECK_NOT_IMPLEMENTED(allowed == Fallbacks::kAllowed, "weft: no kernel for ", name,
                              ", and falling back to the CPU is forbidden");
  if (warns) warn_once(name);
  count_fallback(name);
  replace_generators(op, *stack);
  call_on_cpu(op, *stack);
}

void set_decomposer(std::function<void()> run) {
  Decomposer& d = decomposer();
  const std::lock_guard lock(d.mutex);
  d.run = std::move(run);
  d.has_run = false;
}

// NOLINTBEGIN: PyTorch's macros
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&decompose_or_fall_back>());
}
// PyTorch has kernels of these for all devices, which read memory by its address.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name : {"_grid_sampler_2d_cpu_fallback", "_grid_sampler_2d_cpu_fallback.out"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fall_back>());
  }
}
// NOLINTEND

}  // namespace weft::pytorch
