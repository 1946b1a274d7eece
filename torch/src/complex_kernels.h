// Kernels for complex operands, of operators whose own kernels have none of them: tried before the
// CPU's.
#pragma once

#include <string>
#include <type_traits>

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include "native.h"
#include "structured.h"

namespace weft::pytorch {

// Whether a kernel can do with these arguments.
using Accepts = bool (*)(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// An operand is complex, and all tensors are on the device and of types that weft computes with, or
// pairs of float32 or float64.
bool accepts_complex(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Called while the library loads, where nothing could catch what it throws.
void add_complex_kernel(const std::string& name, c10::KernelFunction kernel, Accepts accepts);

template <class Operator, auto kernel>
void add_complex_kernel(Accepts accepts = &accepts_complex) {
  using Call = detail::Call<Operator, kernel, Others::kGiven, std::decay_t<decltype(kernel)>>;
  add_complex_kernel(Call::name(), c10::KernelFunction::makeFromUnboxedFunction(TORCH_FN(kernel)),
                     accepts);
}

// The forms of a structured operator, see structured().
template <class Meta, auto formula, class Op, class OutOp>
void add_complex_structured() {
  using Kernel = detail::Functional<Meta, formula, typename Op::schema>;
  add_complex_kernel<Op, Kernel::call>();
  add_complex_kernel<OutOp,
                     detail::Out<Meta, formula, Kernel::kCount, typename OutOp::schema>::call>();
}
template <class Meta, auto formula, class Op, class InPlaceOp, class OutOp>
void add_complex_structured() {
  add_complex_structured<Meta, formula, Op, OutOp>();
  add_complex_kernel<InPlaceOp, detail::InPlace<Meta, formula, typename InPlaceOp::schema>::call>();
}

// Whether there was one that did it.
bool call_complex_kernel(const c10::OperatorHandle& op, const std::string& name,
                         torch::jit::Stack* stack);

}  // namespace weft::pytorch
