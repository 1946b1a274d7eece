// Operators that weft has no kernel for.
#include "fallback.h"

#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/native/CPUFallback.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "counters.h"
#include "generator.h"

namespace weft::pytorch {
namespace {

std::atomic<Fallbacks> allowed = Fallbacks::kAllowed;
std::atomic<bool> warns = false;

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

}  // namespace

void set_fallbacks(Fallbacks a) { allowed = a; }
void set_fallback_warnings(bool warn) { warns = warn; }

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = name_of(op);
  TORCH_CHECK_NOT_IMPLEMENTED(allowed == Fallbacks::kAllowed, "weft: no kernel for ", name,
                              ", and falling back to the CPU is forbidden");
  if (warns) warn_once(name);
  count_fallback(name);
  replace_generators(op, *stack);
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

// NOLINTBEGIN: PyTorch's macros
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>());
}
// NOLINTEND

}  // namespace weft::pytorch
