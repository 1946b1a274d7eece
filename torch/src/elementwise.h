// Elementwise operators as formulas on Terms, beside those that are methods of weft's tensors:
//
//   structured<at::meta::structured_tanh, kReal<[](const Term& x) { return tanh(x); }>, ...>(m);
//   structured<at::meta::structured_atan, kMethod<&weft::Tensor::atan>, ...>(m);
//
// and shape functions for operators that PyTorch has none of.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <ATen/ScalarOps.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/Exception.h>

#include "convert.h"
#include "storage.h"
#include "structured.h"
#include "tensor/calls.h"
#include "tensor/operand.h"
#include "tensor/term.h"
#include "weft/dtype.h"
#include "weft/number.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {

// An operand as a term of this shape, or a scalar.
inline Term term_of(const at::Tensor& tensor, Ints shape, c10::ScalarType type) {
  if (tensor.device().is_privateuseone()) {
    return Term(cast_value(as_operand(read(handle(tensor)), shape), dtype_of(type)));
  }
  return Term(read(operand(tensor, type)));
}
// The type in which reals of this type are computed: narrow floats are rounded once, at the end.
inline c10::ScalarType computing_type(c10::ScalarType type) {
  const bool is_narrow = type == c10::ScalarType::Half || type == c10::ScalarType::BFloat16;
  return is_narrow ? c10::ScalarType::Float : type;
}

// f of the operands, computed in this type.
template <class Function, class... Operands>
weft::Tensor compute_in(c10::ScalarType type, const Shaped& s, Function&& f,
                        const Operands&... operands) {
  const Ints shape = ints(s.out().sizes());
  return tensor_of(f(term_of(operands, shape, type)...), held(s.out().scalar_type()).dtype);
}
// ... in the one that they are promoted to,
template <class Function, class... Operands>
weft::Tensor compute(const Shaped& s, Function&& f, const Operands&... operands) {
  return compute_in(*s.common, s, std::forward<Function>(f), operands...);
}
// ... or, of narrow floats, in float32.
template <class Function, class... Operands>
weft::Tensor compute_reals(const Shaped& s, Function&& f, const Operands&... operands) {
  return compute_in(computing_type(*s.common), s, std::forward<Function>(f), operands...);
}

// An argument of a call: tensors are terms of this shape, attributes are themselves.
template <class Arg>
auto argument_of(const Arg& arg, Ints shape, c10::ScalarType type) {
  if constexpr (std::is_same_v<Arg, at::Tensor>) {
    return term_of(arg, shape, type);
  } else {
    return arg;
  }
}
// ... as a call (value/call.h): its attributes, then its operands.
template <const auto& kRow, class... Args>
weft::Tensor call_reals(const Shaped& s, const Args&... args) {
  const c10::ScalarType type = computing_type(*s.common);
  const Ints shape = ints(s.out().sizes());
  return tensor_of(call<kRow>({dtype_of(type), shape}, argument_of(args, shape, type)...),
                   held(s.out().scalar_type()).dtype);
}

// ... of floats alone: PyTorch's CPU has no kernels for whole numbers.
inline void check_floats(c10::ScalarType type) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isFloatingType(type), "weft: an operator of floats is not ",
                              "implemented for '", c10::toString(type), "'");
}
template <class Function, class... Operands>
weft::Tensor compute_floats(const Shaped& s, Function&& f, const Operands&... operands) {
  check_floats(*s.common);
  return compute_reals(s, std::forward<Function>(f), operands...);
}
template <const auto& kRow, class... Args>
weft::Tensor call_floats(const Shaped& s, const Args&... args) {
  check_floats(*s.common);
  return call_reals<kRow>(s, args...);
}

// Formulas for structured().
template <auto f>
constexpr auto kReal =
    [](const Shaped& s, const auto&... operands) { return compute_reals(s, f, operands...); };
template <auto f>
constexpr auto kPlain =
    [](const Shaped& s, const auto&... operands) { return compute(s, f, operands...); };
template <auto f>
constexpr auto kFloat =
    [](const Shaped& s, const auto&... operands) { return compute_floats(s, f, operands...); };
template <const auto& kRow>
constexpr auto kCallOnFloats =
    [](const Shaped& s, const auto&... operands) { return call_floats<kRow>(s, operands...); };
template <auto method>
constexpr auto kMethod = [](const Shaped& s, const at::Tensor& a) { return (s.in(a).*method)(); };
template <auto method>
constexpr auto kBinaryMethod = [](const Shaped& s, const at::Tensor& a, const at::Tensor& b) {
  return (s.in(a).*method)(s.in(b));
};

inline double real_of(const at::Scalar& scalar) { return scalar.toDouble(); }
// A number of a formula, which has to fit the type that it computes with.
inline void check_fits(c10::ScalarType type, const at::Scalar& scalar) {
  const bool is_narrow = c10::isFloatingType(type) && type != c10::ScalarType::Double;
  const double value = is_narrow && !scalar.isComplex() ? scalar.toDouble() : 0;
  TORCH_CHECK(!std::isfinite(value) || std::abs(value) <= std::numeric_limits<float>::max(),
              "value cannot be converted to type float without overflow");
}
inline double real_of(const Shaped& s, const at::Scalar& scalar) {
  check_fits(*s.common, scalar);
  return scalar.toDouble();
}
inline Number number_of(const Shaped& s, const at::Scalar& scalar) {
  check_fits(*s.common, scalar);
  return number_of(scalar);
}
inline Term magnitude_of(const Term& x) { return negate(sign_bit(x), x); }  // of a float

// ---- shape functions: of operators that have none, as their kernels for the CPU have them

struct UnaryMeta : at::TensorIteratorBase {
  template <class... Rest>
  void meta(const at::Tensor& self, const Rest&...) {
    build_borrowing_unary_op(maybe_get_output(), self);
  }
};
// Floats of integers.
struct UnaryFloatMeta : at::TensorIteratorBase {
  template <class... Rest>
  void meta(const at::Tensor& self, const Rest&...) {
    build_borrowing_unary_float_op(maybe_get_output(), self);
  }
};
struct UnaryBoolMeta : at::TensorIteratorBase {
  template <class... Rest>
  void meta(const at::Tensor& self, const Rest&...) {
    build_borrowing_unary_force_boolean_op(maybe_get_output(), self);
  }
};
struct BinaryMeta : at::TensorIteratorBase {
  template <class... Rest>
  void meta(const at::Tensor& a, const at::Tensor& b, const Rest&...) {
    build_borrowing_binary_op(maybe_get_output(), a, b);
  }
};
struct TernaryMeta : at::TensorIteratorBase {
  template <class... Rest>
  void meta(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c, const Rest&...) {
    build_ternary_op(maybe_get_output(), a, b, c);
  }
};
// Two tensors of one dtype: nothing is promoted.
struct SameTypesMeta : BinaryMeta {
  template <class... Rest>
  void meta(const at::Tensor& a, const at::Tensor& b, const Rest&...) {
    TORCH_CHECK(a.scalar_type() == b.scalar_type(), "Found dtype ", b.scalar_type(),
                " but expected ", a.scalar_type());
    BinaryMeta::meta(a, b);
  }
};
// Bools, unless the output is another.
struct ComparisonMeta : at::TensorIteratorBase {
  template <class... Rest>
  void meta(const at::Tensor& a, const at::Tensor& b, const Rest&...) {
    build_borrowing_comparison_op(maybe_get_output(), a, b);
  }
};

// ---- one form alone, to be called by kernels of overloads that only change the arguments

template <class Meta, auto formula, class Op>
using FunctionalForm = detail::Functional<Meta, formula, typename Op::schema>;
template <class Meta, auto formula, class Op>
using InPlaceForm = detail::InPlace<Meta, formula, typename Op::schema>;

// x op number and its in-place form: the number as PyTorch wraps it.
template <class Meta, auto formula, class Op, class InPlaceOp>
struct WithNumber {
  template <class... Rest>
  static at::Tensor functional(const at::Tensor& self, const at::Scalar& other, Rest... rest) {
    return FunctionalForm<Meta, formula, Op>::call(self, at::native::wrapped_scalar_tensor(other),
                                                   rest...);
  }
  template <class... Rest>
  static at::Tensor& in_place(at::Tensor& self, const at::Scalar& other, Rest... rest) {
    return InPlaceForm<Meta, formula, InPlaceOp>::call(
        self, at::native::wrapped_scalar_tensor(other), rest...);
  }
};

}  // namespace weft::pytorch
