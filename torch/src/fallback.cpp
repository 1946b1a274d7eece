// Operators that weft has no kernel for.
#include "fallback.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_to_cpu.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "complex_kernels.h"
#include "counters.h"
#include "generator.h"
#include "storage.h"
#include "value/view.h"
#include "weft/tensor.h"

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

// ---- writes to memory that other elements or operands have, too: a CPU kernel must see it as it
// is,
// ---- and may refuse it

std::span<c10::IValue> arguments_of(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  return std::span(stack).last(op.schema().arguments().size());
}

// Storages of the device that are written through a tensor that has an element more than once, or
// that more than one operand has.
std::set<const c10::StorageImpl*> shared_storages(const c10::OperatorHandle& op,
                                                  torch::jit::Stack& stack) {
  std::map<const c10::StorageImpl*, int> uses;
  std::set<const c10::StorageImpl*> written, shared;
  const std::span<c10::IValue> values = arguments_of(op, stack);
  for (size_t i = 0; i < values.size(); i++) {
    if (!values[i].isTensor() || !values[i].toTensor().is_privateuseone()) continue;
    const at::Tensor& t = values[i].toTensor();
    const c10::StorageImpl* const storage = t.storage().unsafeGetStorageImpl();
    uses[storage]++;
    const auto* const alias = op.schema().arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    written.insert(storage);
    if (has_overlap(handle(t).view())) shared.insert(storage);
  }
  for (const c10::StorageImpl* const storage : written) {
    if (uses[storage] > 1) shared.insert(storage);
  }
  return shared;
}

// All of the storage of a tensor, in its type.
at::Tensor whole(const at::Tensor& t) {
  const int64_t count = int64_t(t.storage().nbytes() / t.itemsize());
  return at::empty({0}, t.options()).set_(t.storage(), 0, {count}, {1});
}
at::Tensor on_storage(const c10::Storage& storage, const at::Tensor& like) {
  at::Tensor t = at::empty({0}, like.options().device(at::kCPU));
  t.set_(storage, like.storage_offset(), like.sizes(), like.strides());
  t._set_conj(like.is_conj());
  t._set_neg(like.is_neg());
  return t;
}

// The storages are copied whole, and the operands are on the copies what they are here.
void fall_back_on_copies(const c10::OperatorHandle& op, torch::jit::Stack& stack,
                         const std::set<const c10::StorageImpl*>& shared) {
  struct Copy {
    at::Tensor here, there;
  };
  std::map<const c10::StorageImpl*, Copy> copies;
  std::vector<Copy> operands;
  for (c10::IValue& value : arguments_of(op, stack)) {
    if (value.isTensorList()) value = at::_to_cpu(value.toTensorVector());
    if (!value.isTensor() || !value.toTensor().is_privateuseone()) continue;
    const at::Tensor here = value.toTensor();
    const c10::StorageImpl* const storage = here.storage().unsafeGetStorageImpl();
    if (shared.contains(storage) && !copies.contains(storage)) {
      const at::Tensor all = whole(here);
      copies[storage] = {all, all.cpu()};
    }
    const at::Tensor there =
        shared.contains(storage) ? on_storage(copies[storage].there.storage(), here) : here.cpu();
    operands.push_back({here, there});
    value = there;
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  for (const auto& [storage, copy] : copies) copy.here.copy_(copy.there);
  for (const Copy& operand : operands) {
    if (operand.here.sizes() == operand.there.sizes()) continue;  // an output that was resized
    at::native::resize_output(operand.here, operand.there.sizes());
    operand.here.copy_(operand.there);
  }
  for (c10::IValue& value : std::span(stack).last(op.schema().returns().size())) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor result = value.toTensor();
    const auto same = std::ranges::find_if(
        operands, [&](const Copy& operand) { return operand.there.is_same(result); });
    value = same != operands.end() ? same->here : result.to(operands[0].here.device());
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
  const auto shared = shared_storages(op, *stack);
  if (!shared.empty()) return fall_back_on_copies(op, *stack, shared);
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
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
