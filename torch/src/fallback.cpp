// Operators that weft has no kernel for.
#include "fallback.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_to_cpu.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "complex_kernels.h"
#include "counters.h"
#include "generator.h"

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

// ---- writes through expanded tensors, which a CPU kernel must see as they are: it may refuse them

bool is_expanded(const at::Tensor& t) {
  return at::has_internal_overlap(t) == at::MemOverlap::Yes;
}
// An axis of size 1 in place of each that repeats elements.
at::Tensor without_repeats(at::Tensor t) {
  for (int64_t i = 0; i < t.dim(); i++) {
    if (t.stride(i) == 0 && t.size(i) > 1) t = t.narrow(i, 0, 1);
  }
  return t;
}

bool writes_expanded(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  const size_t first = stack.size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); i++) {
    const auto* const alias = arguments[i].alias_info();
    const c10::IValue& value = stack[first + i];
    if (alias == nullptr || !alias->isWrite() || !value.isTensor()) continue;
    if (value.toTensor().defined() && is_expanded(value.toTensor())) return true;
  }
  return false;
}

struct Written {
  at::Tensor given, each;    // of the device: the tensor, and it without repeats
  at::Tensor copy, on_cpu;  // the latter on the CPU, and that expanded
};

// The operands on the CPU, expanded as they were; those that are written.
std::vector<Written> move_to_cpu(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  std::vector<Written> written;
  const auto& arguments = op.schema().arguments();
  const size_t first = stack.size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); i++) {
    c10::IValue& value = stack[first + i];
    if (value.isTensorList()) value = at::_to_cpu(value.toTensorVector());
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor given = value.toTensor(), each = without_repeats(given);
    const at::Tensor copy = each.cpu(), on_cpu = copy.expand(given.sizes());
    value = on_cpu;
    const auto* const alias = arguments[i].alias_info();
    if (alias != nullptr && alias->isWrite()) written.push_back({given, each, copy, on_cpu});
  }
  return written;
}

void fall_back_expanded(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const std::vector<Written> written = move_to_cpu(op, stack);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  for (const Written& w : written) {
    const bool is_resized = at::native::resize_output(w.given, w.on_cpu.sizes());
    is_resized ? w.given.copy_(w.on_cpu) : w.each.copy_(w.copy);
  }
  const size_t count = op.schema().returns().size();
  for (size_t i = stack.size() - count; i < stack.size(); i++) {
    if (!stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
    const at::Tensor result = stack[i].toTensor();
    const auto same = std::ranges::find_if(
        written, [&](const Written& w) { return w.on_cpu.is_same(result); });
    stack[i] = same != written.end() ? same->given : result.to(written[0].given.device());
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
  if (call_complex_kernel(op, name, stack)) return;
  TORCH_CHECK_NOT_IMPLEMENTED(allowed == Fallbacks::kAllowed, "weft: no kernel for ", name,
                              ", and falling back to the CPU is forbidden");
  if (warns) warn_once(name);
  count_fallback(name);
  replace_generators(op, *stack);
  if (writes_expanded(op, *stack)) {
    fall_back_expanded(op, *stack);
  } else {
    at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
  }
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
// NOLINTEND

}  // namespace weft::pytorch
