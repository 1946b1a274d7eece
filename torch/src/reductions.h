// What the reductions share: axes, and shape functions for those that PyTorch has none of.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/TensorMeta.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <c10/core/ScalarType.h>
#include <c10/util/OptionalArrayRef.h>

#include "weft/tensor.h"

namespace weft::pytorch {

// No axes, or an empty list: all of them. A scalar has none, whatever PyTorch lets it be called.
inline Axes axes_of(const at::Tensor& self, at::OptionalIntArrayRef dims) {
  if (self.dim() == 0 || !dims || dims->empty()) return {};
  std::vector<int64_t> axes;
  axes.reserve(dims->size());
  for (const int64_t dim : *dims) axes.push_back(at::maybe_wrap_dim(dim, self.dim()));
  return axes;
}
inline Axes axis_of(const at::Tensor& self, int64_t dim) {
  return axes_of(self, at::IntArrayRef(dim));
}

// Sums of integers are int64.
inline c10::ScalarType sum_type(const at::Tensor& self, std::optional<c10::ScalarType> given) {
  if (given) return *given;
  return c10::isIntegralType(self.scalar_type(), true) ? at::kLong : self.scalar_type();
}

// Of every element, in the operand's dtype.
struct WholeMeta : at::impl::MetaBase {
  void meta(const at::Tensor& self) { set_output_raw_strided(0, {}, {}, self.options()); }
};

}  // namespace weft::pytorch
