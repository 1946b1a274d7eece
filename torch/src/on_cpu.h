// A call of an operator by PyTorch's CPU kernel, on copies of its operands.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace weft::pytorch {

// Whether a tensor of the device has an element of memory more than once: expanded ones, windows.
bool repeats_elements(const at::Tensor& tensor);
// ... and the operator writes such a one. What it then holds is what the CPU's kernel makes of it.
bool writes_repeated_elements(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Copies the operands to the CPU, calls the operator there, and copies its results and what it
// wrote back. The copies have strides in the order of the operands', and those that share memory
// which is written share it there.
void call_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace weft::pytorch
