// Operands that PyTorch's CPU kernels read as elements of one type, and does not cast.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

namespace weft::pytorch {

inline void check_one_type(const at::Tensor& first, const at::Tensor& other) {
  TORCH_CHECK(!other.defined() || other.scalar_type() == first.scalar_type(),
              "expected scalar type ", first.scalar_type(), " but found ", other.scalar_type());
}
inline void check_one_type(const at::Tensor& first, const std::optional<at::Tensor>& other) {
  if (other) check_one_type(first, *other);
}

}  // namespace weft::pytorch
