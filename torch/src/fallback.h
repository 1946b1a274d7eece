// Operators that weft has no kernel for: PyTorch's CPU kernels do them, counted by name.
#pragma once

#include <functional>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace weft::pytorch {

enum class Fallbacks : uint8_t { kAllowed, kForbidden };
void set_fallbacks(Fallbacks allowed);
void set_fallback_warnings(bool warn);

// Called once, when an operator is first met that has no kernel: it registers what PyTorch itself can
// make of kernels that there are.
void set_decomposer(std::function<void()> decomposer);

// Copies the operands to the CPU, does the operator there, and copies its results and what it wrote
// back.
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace weft::pytorch
