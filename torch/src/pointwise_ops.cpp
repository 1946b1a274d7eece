// Elementwise arithmetic of two operands and more.
#include <cmath>
#include <optional>

#include <ATen/ops/add_meta.h>
#include <ATen/ops/addcdiv_meta.h>
#include <ATen/ops/addcmul_meta.h>
#include <ATen/ops/atan2_meta.h>
#include <ATen/ops/copysign_meta.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/fmod_meta.h>
#include <ATen/ops/lerp_meta.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/pow_meta.h>
#include <ATen/ops/remainder_meta.h>
#include <ATen/ops/result_type_native.h>
#include <ATen/ops/sub_meta.h>
#include <torch/library.h>

#include "convert.h"
#include "elementwise.h"
#include "ir/op.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/remainder.h"
#include "tensor/term.h"
#include "value/row.h"
#include "weft/number.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

bool is_one(const at::Scalar& x) {
  return x.isFloatingPoint() ? x.toDouble() == 1 : x.toLong() == 1;
}
Term times(const Shaped& s, const at::Scalar& factor, const Term& x) {
  return x.like(number_of(s, factor)) * x;
}

// ---- sums and products

template <Op op>
weft::Tensor add_or_sub(const Shaped& s, const at::Tensor& a, const at::Tensor& b,
                        const at::Scalar& alpha) {
  const auto f = [&](const Term& x, const Term& y) {
    return apply(op, x, is_one(alpha) ? y : times(s, alpha, y));
  };
  return compute_reals(s, f, a, b);
}
constexpr auto kAdd = add_or_sub<Op::ADD>;
constexpr auto kSub = add_or_sub<Op::SUB>;
// Numbers keep their precision beside narrow floats.
constexpr auto kMul = kReal<[](const Term& x, const Term& y) { return x * y; }>;
constexpr auto kDiv = kReal<[](const Term& x, const Term& y) { return x / y; }>;

weft::Tensor addcmul(const Shaped& s, const at::Tensor& self, const at::Tensor& a,
                     const at::Tensor& b, const at::Scalar& value) {
  const auto f = [&](const Term& x, const Term& y, const Term& z) {
    return x + (is_one(value) ? y : times(s, value, y)) * z;
  };
  return compute_reals(s, f, self, a, b);
}
weft::Tensor addcdiv(const Shaped& s, const at::Tensor& self, const at::Tensor& a,
                     const at::Tensor& b, const at::Scalar& value) {
  const auto f = [&](const Term& x, const Term& y, const Term& z) {
    return x + (is_one(value) ? y : times(s, value, y)) / z;
  };
  return compute_reals(s, f, self, a, b);
}

// ---- divisions that round

void check_divisor(const Shaped& s, const at::Tensor& divisor) {
  if (c10::isFloatingType(*s.common) || divisor.device().is_privateuseone()) return;
  TORCH_CHECK(divisor.item().toLong() != 0, "ZeroDivisionError");
}

// As PyTorch has it: from the remainder, so that it fits to it.
Term floor_quotient(const Term& x, const Term& y) {
  const Term rest = remainder_toward_zero(x, y), exact = (x - rest) / y;
  const Term is_other_side = (rest != rest.like(0.0)) & ((y < 0) != (rest < 0));
  const Term quotient = where(is_other_side, exact - 1, exact), down = floor(quotient);
  const Term nearest = where(0.5 < quotient - down, down + 1, down);
  const Term plain = x / y, zero = where(sign_bit(plain), plain.like(-0.0), plain.like(0.0));
  return where(y == 0, plain, where(quotient == 0, zero, nearest));
}

constexpr auto kFloorDivide = row<floor_quotient>("floor_divide");
constexpr auto kRemainder = row<remainder_down>("remainder");
constexpr auto kFmod = row<remainder_toward_zero>("fmod");

weft::Tensor floor_divide(const Shaped& s, const at::Tensor& a, const at::Tensor& b) {
  check_divisor(s, b);
  if (c10::isFloatingType(*s.common)) return call_reals<kFloorDivide>(s, a, b);
  return compute(s, [](const Term& x, const Term& y) { return apply(Op::IDIV, x, y); }, a, b);
}
weft::Tensor trunc_divide(const Shaped& s, const at::Tensor& a, const at::Tensor& b) {
  check_divisor(s, b);
  if (c10::isFloatingType(*s.common)) {
    // The quotient is rounded before it is cut off.
    return compute(s, [](const Term& x, const Term& y) { return trunc(x / y); }, a, b);
  }
  return compute(s, [](const Term& x, const Term& y) { return apply(Op::CDIV, x, y); }, a, b);
}
weft::Tensor div_mode(const Shaped& s, const at::Tensor& a, const at::Tensor& b,
                      std::optional<c10::string_view> mode) {
  if (!mode) return kDiv(s, a, b);
  return *mode == "floor" ? floor_divide(s, a, b) : trunc_divide(s, a, b);
}

weft::Tensor remainder(const Shaped& s, const at::Tensor& a, const at::Tensor& b) {
  check_divisor(s, b);
  if (c10::isFloatingType(*s.common)) return call_reals<kRemainder>(s, a, b);
  return compute(s, [](const Term& x, const Term& y) { return apply(Op::MOD, x, y); }, a, b);
}
weft::Tensor fmod(const Shaped& s, const at::Tensor& a, const at::Tensor& b) {
  check_divisor(s, b);
  if (c10::isFloatingType(*s.common)) return call_reals<kFmod>(s, a, b);
  return compute(s, [](const Term& x, const Term& y) { return apply(Op::CMOD, x, y); }, a, b);
}

// ---- powers

weft::Tensor pow_of_tensors(const Shaped& s, const at::Tensor& a, const at::Tensor& b) {
  return s.in(a).pow(s.in(b));
}
// Bfloat16 rounds the number, too.
Number number_in(const at::Scalar& scalar, c10::ScalarType type) {
  const bool is_rounded = type == at::kBFloat16 && scalar.isFloatingPoint();
  return is_rounded ? double(float(c10::BFloat16(float(scalar.toDouble())))) : number_of(scalar);
}
weft::Tensor pow_to_number(const Shaped& s, const at::Tensor& a, const at::Scalar& exponent) {
  const double power = exponent.isFloatingPoint() ? exponent.toDouble() : 0;
  if (std::abs(power) == 0.5 && *s.common == at::kHalf) {  // no roots: pow(-inf, 0.5) is inf
    return s.in(a).pow(number(exponent, at::kHalf));
  }
  if (power == -0.5) return s.in(a).rsqrt();
  return s.in(a).pow(number_in(exponent, *s.common));
}
weft::Tensor pow_of_number(const Shaped&, const at::Scalar& base, const at::Tensor& exponent) {
  const auto type = at::native::result_type(base, exponent);
  return operand(exponent, type).reverse_pow(number_in(base, type));
}

// ---- between two

Term lerp_of(const Term& from, const Term& to, const Term& weight) {
  const Term distance = to - from, is_small = magnitude_of(weight) < 0.5;
  return where(is_small, from + weight * distance, to - distance * (1 - weight));
}
weft::Tensor lerp_scalar(const Shaped& s, const at::Tensor& from, const at::Tensor& to,
                         const at::Scalar& weight) {
  const double w = real_of(s, weight);
  const auto f = [w](const Term& x, const Term& y) {
    return std::abs(w) < 0.5 ? x + w * (y - x) : y - (y - x) * (1 - w);
  };
  return compute_reals(s, f, from, to);
}

// ---- overloads that change the arguments

using AddNumber =
    WithNumber<at::meta::structured_add_Tensor, kAdd, at::_ops::add_Tensor, at::_ops::add__Tensor>;
using SubNumber =
    WithNumber<at::meta::structured_sub_Tensor, kSub, at::_ops::sub_Tensor, at::_ops::sub__Tensor>;
using MulNumber =
    WithNumber<at::meta::structured_mul_Tensor, kMul, at::_ops::mul_Tensor, at::_ops::mul__Tensor>;
using DivNumber =
    WithNumber<at::meta::structured_div_Tensor, kDiv, at::_ops::div_Tensor, at::_ops::div__Tensor>;

at::Tensor add_scalar(const at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha) {
  return AddNumber::functional<const at::Scalar&>(self, other, alpha);
}
at::Tensor& add_scalar_(at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha) {
  return AddNumber::in_place<const at::Scalar&>(self, other, alpha);
}
at::Tensor sub_scalar(const at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha) {
  return SubNumber::functional<const at::Scalar&>(self, other, alpha);
}
at::Tensor& sub_scalar_(at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha) {
  return SubNumber::in_place<const at::Scalar&>(self, other, alpha);
}

using Subtraction = FunctionalForm<at::meta::structured_sub_Tensor, kSub, at::_ops::sub_Tensor>;
at::Tensor rsub(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  return Subtraction::call(other, self, alpha);
}
at::Tensor rsub_scalar(const at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha) {
  return Subtraction::call(at::native::wrapped_scalar_tensor(other), self, alpha);
}
at::Tensor remainder_of_scalar(const at::Scalar& self, const at::Tensor& other) {
  using Form =
      FunctionalForm<at::meta::structured_remainder_Tensor, remainder, at::_ops::remainder_Tensor>;
  return Form::call(at::native::wrapped_scalar_tensor(self), other);
}

// NOLINTBEGIN: PyTorch's macros
#define WEFT_TENSOR_OP(name, formula)                                                \
  structured<at::meta::structured_##name##_Tensor, formula, at::_ops::name##_Tensor, \
             at::_ops::name##__Tensor, at::_ops::name##_out>(m)
#define WEFT_TENSOR_OP_2(name, formula)                                              \
  structured<at::meta::structured_##name##_Tensor, formula, at::_ops::name##_Tensor, \
             at::_ops::name##__Tensor, at::_ops::name##_Tensor_out>(m)
#define WEFT_OPERATOR(name, formula)                                                  \
  structured<at::meta::structured_##name, formula, at::_ops::name, at::_ops::name##_, \
             at::_ops::name##_out>(m)
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  WEFT_TENSOR_OP(add, kAdd);
  WEFT_TENSOR_OP(sub, kSub);
  WEFT_TENSOR_OP(mul, kMul);
  WEFT_TENSOR_OP(div, kDiv);
  structured<at::meta::structured_div_Tensor_mode, div_mode, at::_ops::div_Tensor_mode,
             at::_ops::div__Tensor_mode, at::_ops::div_out_mode>(m);
  structured<BinaryMeta, floor_divide, at::_ops::floor_divide, at::_ops::floor_divide__Tensor,
             at::_ops::floor_divide_out>(m);
  WEFT_TENSOR_OP_2(remainder, remainder);
  WEFT_TENSOR_OP_2(fmod, fmod);
  WEFT_OPERATOR(addcmul, addcmul);
  WEFT_OPERATOR(addcdiv, addcdiv);
  WEFT_OPERATOR(atan2, kBinaryMethod<&weft::Tensor::atan2>);
  WEFT_TENSOR_OP(copysign, kBinaryMethod<&weft::Tensor::copysign>);
  structured<at::meta::structured_pow_Tensor_Tensor, pow_of_tensors, at::_ops::pow_Tensor_Tensor,
             at::_ops::pow__Tensor, at::_ops::pow_Tensor_Tensor_out>(m);
  structured<at::meta::structured_pow_Tensor_Scalar, pow_to_number, at::_ops::pow_Tensor_Scalar,
             at::_ops::pow__Scalar, at::_ops::pow_Tensor_Scalar_out>(m);
  structured<at::meta::structured_pow_Scalar, pow_of_number, at::_ops::pow_Scalar,
             at::_ops::pow_Scalar_out>(m);
  structured<at::meta::structured_lerp_Tensor, kReal<lerp_of>, at::_ops::lerp_Tensor,
             at::_ops::lerp__Tensor, at::_ops::lerp_Tensor_out>(m);
  structured<at::meta::structured_lerp_Scalar, lerp_scalar, at::_ops::lerp_Scalar,
             at::_ops::lerp__Scalar, at::_ops::lerp_Scalar_out>(m);

  native<at::_ops::add_Scalar, add_scalar>(m);
  native<at::_ops::add__Scalar, add_scalar_>(m);
  native<at::_ops::sub_Scalar, sub_scalar>(m);
  native<at::_ops::sub__Scalar, sub_scalar_>(m);
  native<at::_ops::mul_Scalar, MulNumber::functional<>>(m);
  native<at::_ops::mul__Scalar, MulNumber::in_place<>>(m);
  native<at::_ops::div_Scalar, DivNumber::functional<>>(m);
  native<at::_ops::div__Scalar, DivNumber::in_place<>>(m);
  native<at::_ops::rsub_Tensor, rsub>(m);
  native<at::_ops::rsub_Scalar, rsub_scalar>(m);
  native<at::_ops::remainder_Scalar_Tensor, remainder_of_scalar>(m);
}
#undef WEFT_TENSOR_OP
#undef WEFT_TENSOR_OP_2
#undef WEFT_OPERATOR
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
