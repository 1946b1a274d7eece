// What the reductions share: axes, and shape functions for those that PyTorch has none of.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/TensorMeta.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/core/DimVector.h>
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

// The same axes, as an attribute of a call.
class KeptAxes {
  using Bits = std::bitset<at::dim_bitset_size>;

 public:
  KeptAxes() = default;
  KeptAxes(const at::Tensor& self, at::OptionalIntArrayRef dims)
      : bits_(self.dim() == 0 || !dims || dims->empty()
                  ? Bits().set().to_ullong()
                  : at::dim_list_to_bitset(dims, size_t(self.dim())).to_ullong()) {}
  auto fields() { return std::tie(bits_); }
  Axes of(const weft::Tensor& x) const {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < x.ndim(); i++) {
      if (bits_ >> i & 1) axes.push_back(i);
    }
    return axes;
  }

 private:
  uint64_t bits_ = 0;
};

// Sums of integers are int64.
inline c10::ScalarType sum_type(const at::Tensor& self, std::optional<c10::ScalarType> given) {
  if (given) return *given;
  return c10::isIntegralType(self.scalar_type(), true) ? at::kLong : self.scalar_type();
}

// Of every element, in the operand's dtype.
struct WholeMeta : at::impl::MetaBase {
  void meta(const at::Tensor& self) { set_output_raw_strided(0, {}, {}, self.options()); }
};

// Of an axis, which is gone or of size 1: values as the operand, and their places.
struct PlacesMeta : at::impl::MetaBase {
  void set_reduced(const at::Tensor& self, int64_t dim, bool keepdim) {
    const int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    at::DimVector sizes(self.sizes());
    if (!sizes.empty() && keepdim) sizes[size_t(axis)] = 1;
    if (!sizes.empty() && !keepdim) sizes.erase(sizes.begin() + axis);
    set_output_raw_strided(0, sizes, {}, self.options());
    set_output_raw_strided(1, sizes, {}, self.options().dtype(at::kLong));
  }
};

}  // namespace weft::pytorch
