// Kernels for complex operands.
#include "complex_kernels.h"

#include <cstddef>
#include <exception>
#include <string>
#include <unordered_map>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "convert.h"
#include "counters.h"
#include "native.h"

namespace weft::pytorch {
namespace {

struct Entry {
  c10::KernelFunction kernel;
  Accepts accepts;
  OperatorCount* count;
};
std::unordered_map<std::string, Entry>& entries() {
  static auto* const kEntries = new std::unordered_map<std::string, Entry>;
  return *kEntries;
}

bool is_accepted(const at::Tensor& tensor) {
  if (!tensor.defined()) return true;
  if (tensor.layout() != at::kStrided) return false;
  const c10::ScalarType type = tensor.scalar_type();
  const bool is_pair = type == c10::kComplexFloat || type == c10::kComplexDouble;
  const bool is_here = tensor.device().is_privateuseone() || tensor.dim() == 0;
  return is_here && (is_computed(type) || is_pair);
}

}  // namespace

bool accepts_complex(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  bool has_complex = false;
  for (size_t i = 0; i < arguments.size(); i++) {
    const c10::IValue& value = torch::jit::peek(stack, i, arguments.size());
    const bool is_operand = !arguments[i].is_out();
    has_complex |= value.isComplexDouble();
    if (value.isTensor()) {
      if (!is_accepted(value.toTensor())) return false;
      has_complex |= is_operand && value.toTensor().defined() && value.toTensor().is_complex();
    }
    if (!value.isTensorList()) continue;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (!is_accepted(tensor)) return false;
      has_complex |= is_operand && tensor.is_complex();
    }
  }
  return has_complex;
}

void add_complex_kernel(const std::string& name, c10::KernelFunction kernel, Accepts accepts) {
  entries().emplace(name, Entry{std::move(kernel), accepts, new OperatorCount(name)});
}

bool call_complex_kernel(const c10::OperatorHandle& op, const std::string& name,
                         torch::jit::Stack* stack) {
  const auto found = entries().find(name);
  if (found == entries().end() || !found->second.accepts(op, *stack)) return false;
  found->second.count->add();
  try {
    found->second.kernel.callBoxed(op, c10::DispatchKeySet(), stack);
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception&) {
    throw_as_torch();
  }
  return true;
}

}  // namespace weft::pytorch
