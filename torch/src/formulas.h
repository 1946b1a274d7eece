// What formulas of operators share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>

#include "base/ref.h"
#include "convert.h"
#include "storage.h"
#include "tensor/operand.h"
#include "value/value.h"
#include "weft/dtype.h"
#include "weft/gradient.h"
#include "weft/tensor.h"

namespace weft::pytorch {

// Floats of less than 32 bits in float32: results are rounded once, at the end.
inline weft::Tensor wide(const weft::Tensor& x) {
  return x.dtype().is_float() && x.dtype().bits() < 32 ? x.cast(dtypes::float32) : x;
}
inline weft::Tensor wide_operand(const at::Tensor& x) { return wide(operand(x)); }
// The same, read.
inline Ref<Value> wide_value(const at::Tensor& x) {
  Ref<Value> value = value_of(x);
  const bool is_narrow = value->dtype().is_float() && value->dtype().bits() < 32;
  if (is_narrow) value = cast_value(std::move(value), dtypes::float32);
  return value;
}
// Statistics and parameters may be wider than what they are of.
inline DType wider(DType a, DType b) { return a.bits() < b.bits() ? b : a; }

inline bool is_given(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined();
}
inline std::optional<weft::Tensor> wide_operand(const std::optional<at::Tensor>& x) {
  if (!is_given(x)) return {};
  return wide_operand(*x);
}

inline std::vector<int64_t> list_of(c10::IntArrayRef list) { return {list.begin(), list.end()}; }
// Lists of options may have one number for all axes.
inline std::vector<int64_t> list_of(c10::IntArrayRef list, size_t count) {
  return list.size() == 1 ? std::vector<int64_t>(count, list[0]) : list_of(list);
}

inline std::vector<int64_t> axes_from(int64_t first, int64_t past) {
  std::vector<int64_t> axes;
  for (int64_t i = first; i < past; i++) axes.push_back(i);
  return axes;
}

// Formulas that are written out later find nothing wrong: what is given to them is checked before.
inline void check_sizes(const char* what, const at::Tensor& x, c10::IntArrayRef sizes) {
  TORCH_CHECK(x.sizes() == sizes, what, " has shape ", x.sizes(), "; it must have ", sizes);
}

// A tensor of the device with these values, in this order of memory.
inline at::Tensor give_in(Ref<Value> value, c10::ScalarType type, c10::MemoryFormat format) {
  if (format == c10::MemoryFormat::Contiguous) return give(std::move(value), type);
  at::Tensor result = empty(ints(Sizes(value->shape())), type);
  result.unsafeGetTensorImpl()->empty_tensor_restride(format);
  put(result, std::move(value));
  return result;
}

// What the gradient of a function of tensors is by each of them, where `gradient` is that by its
// result.
template <size_t count, class Function>
std::array<weft::Tensor, count> pulled_back(const std::array<weft::Tensor, count>& at,
                                            const weft::Tensor& gradient, Function&& function) {
  const auto leaf = [](const weft::Tensor& x) {
    weft::Tensor own = tensor_of(read(x));
    own.set_requires_grad();
    return own;
  };
  std::array<weft::Tensor, count> leaves = [&]<size_t... i>(std::index_sequence<i...>) {
    return std::array<weft::Tensor, count>{leaf(at[i])...};
  }(std::make_index_sequence<count>());
  const GradMode on(true);
  const weft::Tensor y =
      tensor_of(read(function(leaves)));  // all of a storage, whatever view it was
  const NoGrad off;
  std::vector<weft::Tensor> by = y.gradient(leaves, gradient);
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return std::array<weft::Tensor, count>{std::move(by[i])...};
  }(std::make_index_sequence<count>());
}

// The same of a function that is linear in one tensor of this shape.
template <class Function>
weft::Tensor pulled_back(c10::IntArrayRef shape, const weft::Tensor& gradient,
                         Function&& function) {
  const std::array at{weft::Tensor::empty(ints(shape), gradient.dtype(), weft_device().name())};
  return pulled_back(at, gradient, [&](const auto& leaves) { return function(leaves[0]); })[0];
}

}  // namespace weft::pytorch
