// Kernels of PyTorch's structured operators. PyTorch's own shape functions run on the tensors
// themselves: shapes, dtypes, strides, overlaps and errors are theirs. What is left is the formula:
//
//   weft::Tensor mul(const Shaped& s, const at::Tensor& a, const at::Tensor& b) {
//     return s.in(a).mul(s.in(b));
//   }
//   structured<at::meta::structured_mul_Tensor, mul, at::_ops::mul_Tensor, at::_ops::mul__Tensor,
//              at::_ops::mul_out>(library);
//
// A formula has the arguments of the functional form. It gives the values of the output, in any
// dtype; of several outputs, an array of them. But for elementwise operators, it is called for
// outputs with elements alone.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "convert.h"
#include "native.h"
#include "new_tensors.h"
#include "storage.h"
#include "torch_version.h"
#include "weft/tensor.h"

namespace weft::pytorch {

// What a formula is told: the outputs, and the dtype that operands are promoted to.
struct Shaped {
  std::span<const at::Tensor> outputs;
  std::optional<c10::ScalarType> common;  // of elementwise operators

  const at::Tensor& out(size_t i = 0) const { return outputs[i]; }
  // An operand, promoted.
  weft::Tensor in(const at::Tensor& tensor) const {
    return common ? operand(tensor, *common) : operand(tensor);
  }
};

enum class Form : uint8_t { kFunctional, kInPlace, kOut };

namespace detail {

// Outputs as a shape function sets them.
template <class Meta, size_t count>
class Shaping final : public Meta {
 public:
  Shaping(Form form, std::array<at::Tensor, count> outputs)
      : form_(form), outputs_(std::move(outputs)) {}

  void set_output_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options WEFT_NAMES_PARAMETER) override {
    set_output_raw_strided(i, sizes, strides, options WEFT_NAMES_ARGUMENT);
  }
  void set_output_raw_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options WEFT_NAMES_PARAMETER) override {
    place(outputs_[size_t(i)], sizes, strides, options);
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Meta>) {
      at::TensorIteratorBase::set_output_raw_strided(i, sizes, strides,
                                                     options WEFT_NAMES_ARGUMENT);
    }
  }
  const at::Tensor& maybe_get_output(int64_t i) override { return outputs_[size_t(i)]; }

  Shaped shaped() {
    Shaped s{outputs_, {}};
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Meta>) {
      if (this->common_dtype_ != c10::ScalarType::Undefined) s.common = this->common_dtype_;
    }
    return s;
  }
  std::array<at::Tensor, count>& outputs() { return outputs_; }

 private:
  void place(at::Tensor& output, at::IntArrayRef sizes, at::IntArrayRef strides,
             const at::TensorOptions& options) {
    const auto type = c10::typeMetaToScalarType(options.dtype());
    if (form_ == Form::kInPlace) {
      TORCH_CHECK(output.sizes() == sizes, "Bad in-place call: input tensor size ", output.sizes(),
                  " and output tensor size ", sizes, " should match");
      TORCH_CHECK(options.dtype() == output.dtype(), "Bad in-place call: input tensor dtype ",
                  output.dtype(), " and output tensor dtype ", options.dtype(), " should match");
    } else if (form_ == Form::kOut) {
      TORCH_CHECK(options.dtype() == output.dtype(), "Expected out tensor to have dtype ",
                  options.dtype(), ", but got ", output.dtype(), " instead");
      TORCH_CHECK(options.device() == output.device(), "Expected out tensor to have device ",
                  options.device(), ", but got ", output.device(), " instead");
      const bool resized = at::native::resize_output(output, sizes);
      if (resized && !strides.empty()) {
        output.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
      } else if (resized && options.memory_format_opt()) {
        output.unsafeGetTensorImpl()->empty_tensor_restride(*options.memory_format_opt());
      }
    } else {
      output = strides.empty() ? empty(sizes, type) : empty_strided(sizes, strides, type);
      if (strides.empty() && options.memory_format_opt()) {
        output.unsafeGetTensorImpl()->empty_tensor_restride(*options.memory_format_opt());
      }
    }
  }

  Form form_;
  std::array<at::Tensor, count> outputs_;
};

inline void put_all(std::span<const at::Tensor> outputs, weft::Tensor value) {
  put(outputs[0], std::move(value));
}
template <size_t count>
void put_all(std::span<const at::Tensor> outputs, std::array<weft::Tensor, count> values) {
  for (size_t i = 0; i < count; i++) put(outputs[i], std::move(values[i]));
}

template <class Result>
inline constexpr size_t kCountOf = 1;
template <size_t count>
inline constexpr size_t kCountOf<std::array<weft::Tensor, count>> = count;

// Shape functions borrow optional tensors.
template <class T>
decltype(auto) for_shape(const T& argument) {
  if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) {
    return argument && argument->defined() ? at::OptionalTensorRef(*argument)
                                           : at::OptionalTensorRef();
  } else {
    return (argument);
  }
}

template <class Shaping, class... Arguments>
void shape(Shaping& shaping, const Arguments&... arguments) {
  if constexpr (requires { shaping.meta(arguments...); }) {
    shaping.meta(arguments...);
  } else {
    shaping.meta(for_shape(arguments)...);
  }
}

// Whether operands may be promoted and one of them is not dense. The CPU casts such a one first,
// and the result has the strides of the cast tensor.
template <class... Arguments>
bool may_be_restrided(const Arguments&... arguments) {
  bool is_dense = true, is_of_one_type = true;
  auto type = c10::ScalarType::Undefined;
  const auto look = [&]<class T>(const T& t) {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      if (!t.defined() || t.dim() == 0) return;
      is_dense &= t.is_non_overlapping_and_dense();
      is_of_one_type &= c10::isFloatingType(t.scalar_type()) &&
                        (type == c10::ScalarType::Undefined || type == t.scalar_type());
      type = t.scalar_type();
    }
  };
  (look(arguments), ...);
  return !is_dense && !is_of_one_type;
}
template <class T>
decltype(auto) as_cast(const T& argument, c10::ScalarType type) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    return weft::pytorch::as_cast(argument, type);
  } else {
    return (argument);
  }
}

template <class Meta, auto formula, class... Arguments>
auto run_structured(Form form, auto outputs, Arguments&&... arguments) {
  using Shapes = Shaping<Meta, std::tuple_size_v<decltype(outputs)>>;
  std::optional<c10::ScalarType> promoted;
  if constexpr (std::is_base_of_v<at::TensorIteratorBase, Meta>) {
    if (form != Form::kInPlace && may_be_restrided(arguments...)) {
      Shapes trial(Form::kFunctional, {});
      shape(trial, arguments...);
      promoted = trial.shaped().common;
    }
  }
  Shapes shaping(form, std::move(outputs));
  if (promoted) {
    shape(shaping, as_cast(arguments, *promoted)...);
  } else {
    shape(shaping, arguments...);
  }
  bool has_elements = false;
  for (const at::Tensor& t : shaping.outputs()) has_elements |= t.numel() != 0;
  if (has_elements) {
    put_all(shaping.outputs(), formula(shaping.shaped(), arguments...));
  } else if constexpr (std::is_base_of_v<at::TensorIteratorBase, Meta>) {
    formula(shaping.shaped(), arguments...);  // what it refuses is refused
  }
  return std::move(shaping.outputs());
}

template <class T>
using Plain = typename c10::maybe_keep_symint<false, T>::type;

// The kernels of the three forms of an operator, by their schemas.
template <class Meta, auto formula, class Schema>
struct Functional;
template <class Meta, auto formula, class Result, class... Arguments>
struct Functional<Meta, formula, Result(Arguments...)> {
  static constexpr size_t kCount = kCountOf<decltype(formula(std::declval<const Shaped&>(),
                                                             std::declval<Plain<Arguments>>()...))>;
  static Result call(Plain<Arguments>... arguments) {
    auto outputs = run_structured<Meta, formula>(Form::kFunctional,
                                                 std::array<at::Tensor, kCount>(), arguments...);
    if constexpr (kCount == 1) {
      return std::move(outputs[0]);
    } else {
      return std::tuple_cat(std::move(outputs));
    }
  }
};

template <class Meta, auto formula, class Schema>
struct InPlace;
template <class Meta, auto formula, class... Arguments>
struct InPlace<Meta, formula, at::Tensor&(at::Tensor&, Arguments...)> {
  static at::Tensor& call(at::Tensor& self, Plain<Arguments>... arguments) {
    run_structured<Meta, formula>(Form::kInPlace, std::array<at::Tensor, 1>{self}, self,
                                  arguments...);
    return self;
  }
};

// Outputs come last.
template <class Meta, auto formula, size_t count, class Schema>
struct Out;
template <class Meta, auto formula, size_t count, class Result, class... Arguments>
struct Out<Meta, formula, count, Result(Arguments...)> {
  static constexpr size_t kInputs = sizeof...(Arguments) - count;
  static Result call(Plain<Arguments>... arguments) {
    const auto all = std::forward_as_tuple(arguments...);
    return split(all, std::make_index_sequence<kInputs>(), std::make_index_sequence<count>());
  }
  template <size_t... input, size_t... output>
  static Result split(const auto& all, std::index_sequence<input...>,
                      std::index_sequence<output...>) {
    run_structured<Meta, formula>(Form::kOut,
                                  std::array<at::Tensor, count>{std::get<kInputs + output>(all)...},
                                  std::get<input>(all)...);
    if constexpr (count == 1) {
      return std::get<kInputs>(all);
    } else {
      return Result(std::get<kInputs + output>(all)...);
    }
  }
};

}  // namespace detail

// `Operators` are the forms of one operator, the functional one first, the out= form last.
template <class Meta, auto formula, class Op, class OutOp>
void structured(torch::Library& library) {
  using Kernel = detail::Functional<Meta, formula, typename Op::schema>;
  native<Op, Kernel::call>(library);
  native<OutOp, detail::Out<Meta, formula, Kernel::kCount, typename OutOp::schema>::call>(library);
}
template <class Meta, auto formula, class Op, class InPlaceOp, class OutOp>
void structured(torch::Library& library) {
  structured<Meta, formula, Op, OutOp>(library);
  native<InPlaceOp, detail::InPlace<Meta, formula, typename InPlaceOp::schema>::call>(library);
}

}  // namespace weft::pytorch
