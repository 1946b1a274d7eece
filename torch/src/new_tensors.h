// Outputs of operators without a shape function of PyTorch's.
#pragma once

#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>

#include "storage.h"

namespace weft::pytorch {

// What at::empty_like makes: the strides of a dense tensor stay.
inline at::Tensor empty_like(const at::Tensor& self, c10::ScalarType type) {
  if (self.is_contiguous()) return empty(self.sizes(), type);
  if (self.is_non_overlapping_and_dense()) return empty_strided(self.sizes(), self.strides(), type);
  const std::vector<int64_t> strides = at::infer_dense_strides(self.sizes(), self.strides());
  return empty_strided(self.sizes(), strides, type);
}

// In place of an operand of an elementwise operator, for the strides of the result: the CPU casts
// it to the type that operands are promoted to.
inline at::Tensor as_cast(const at::Tensor& operand, c10::ScalarType type) {
  const bool stays = !operand.defined() || operand.scalar_type() == type || operand.dim() == 0;
  return stays || operand.is_non_overlapping_and_dense() ? operand : empty_like(operand, type);
}

// The output of an elementwise operator on these operands: a new one where `out` is not defined.
template <class... Tensors>
at::Tensor elementwise_output(const at::Tensor& out, c10::ScalarType type,
                              const Tensors&... operands) {
  if (!out.defined() && (operands.is_contiguous() && ...)) {
    std::vector<int64_t> sizes;
    ((sizes = at::infer_size(sizes, operands.sizes())), ...);
    return empty(sizes, type);
  }
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).allow_cpu_scalars(true).add_output(out);
  config.declare_static_dtype_and_device(type, c10::Device(c10::DeviceType::PrivateUse1, 0));
  (config.add_const_input(operands), ...);
  return config.build().output();
}

}  // namespace weft::pytorch
