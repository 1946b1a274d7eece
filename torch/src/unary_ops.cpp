// Elementwise functions of one operand.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include <ATen/ops/acos_meta.h>
#include <ATen/ops/acosh_meta.h>
#include <ATen/ops/asin_meta.h>
#include <ATen/ops/asinh_meta.h>
#include <ATen/ops/atan_meta.h>
#include <ATen/ops/atanh_meta.h>
#include <ATen/ops/ceil_meta.h>
#include <ATen/ops/cos_meta.h>
#include <ATen/ops/cosh_meta.h>
#include <ATen/ops/erf_meta.h>
#include <ATen/ops/exp2_meta.h>
#include <ATen/ops/exp_meta.h>
#include <ATen/ops/expm1_meta.h>
#include <ATen/ops/floor_meta.h>
#include <ATen/ops/frac_meta.h>
#include <ATen/ops/log10_meta.h>
#include <ATen/ops/log1p_meta.h>
#include <ATen/ops/log2_meta.h>
#include <ATen/ops/log_meta.h>
#include <ATen/ops/neg_meta.h>
#include <ATen/ops/reciprocal_meta.h>
#include <ATen/ops/round_meta.h>
#include <ATen/ops/rsqrt_meta.h>
#include <ATen/ops/sgn_meta.h>
#include <ATen/ops/sigmoid_meta.h>
#include <ATen/ops/sign_meta.h>
#include <ATen/ops/sin_meta.h>
#include <ATen/ops/sinc_meta.h>
#include <ATen/ops/sinh_meta.h>
#include <ATen/ops/sqrt_meta.h>
#include <ATen/ops/tan_meta.h>
#include <ATen/ops/tanh_meta.h>
#include <ATen/ops/trunc_meta.h>
#include <torch/library.h>

#include "elementwise.h"
#include "ir/op.h"
#include "operators.h"
#include "structured.h"
#include "tensor/term.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr double kInfinity = HUGE_VAL;

// Rounding leaves integers as they are.
template <Op op>
Term rounded(const Term& x) {
  return x.dtype().is_float() ? apply(op, x) : x;
}
Term frac(const Term& x) { return x - trunc(x); }

weft::Tensor round_decimals(const Shaped& s, const at::Tensor& a, int64_t decimals) {
  const auto f = [&](const Term& x) {
    if (!x.dtype().is_float()) return x;
    const double power = std::pow(10.0, double(std::abs(decimals)));
    if (decimals == 0) return apply(Op::ROUND, x);
    return decimals < 0 ? apply(Op::ROUND, x / power) * power : apply(Op::ROUND, x * power) / power;
  };
  return compute_reals(s, f, a);
}

weft::Tensor abs(const Shaped& s, const at::Tensor& a) {
  const auto f = [](const Term& x) {
    if (x.dtype().is_float()) return magnitude_of(x);
    return x.dtype().is_signed() ? apply(Op::MAX, x, -x) : x;
  };
  return compute(s, f, a);
}

// -1, 0 or 1: of NaN 0.
Term sign(const Term& x) {
  if (x.dtype().is_bool()) return x;
  const Term zero = x.like(int64_t(0));
  if (x.dtype().is_unsigned()) return cast(zero < x, x.dtype());
  return cast(zero < x, x.dtype()) - cast(x < zero, x.dtype());
}

Term reciprocal(const Term& x) { return apply(Op::RECIP, x); }
Term exp2(const Term& x) { return apply(Op::EXP2, x); }
Term log2(const Term& x) { return apply(Op::LOG2, x); }
Term sin(const Term& x) { return apply(Op::SIN, x); }
Term cos(const Term& x) { return apply(Op::COS, x); }
Term neg(const Term& x) { return -x; }
Term rsqrt(const Term& x) { return 1 / sqrt(x); }
Term sinc(const Term& x) {
  const Term is_zero = x == 0, angle = kPi * where(is_zero, 1.0, x);
  return where(is_zero, 1.0, sin(angle) / angle);
}

// Of a real: pi to the left of 0.
Term angle(const Term& x) { return where(is_nan(x), x, where(x < 0, x.like(kPi), x.like(0.0))); }

weft::Tensor logit(const Shaped& s, const at::Tensor& a, std::optional<double> eps) {
  if (eps) check_fits(*s.common, *eps);
  const auto f = [&](const Term& x) {
    const Term p = eps ? at_most(at_least(x, *eps), 1 - *eps) : x;
    return log(p / (1 - p));
  };
  return compute_reals(s, f, a);
}

double largest(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Half: return 65504;
    case c10::ScalarType::BFloat16: return 0x1.fep+127;
    case c10::ScalarType::Float: return double(std::numeric_limits<float>::max());
    default: return std::numeric_limits<double>::max();
  }
}
weft::Tensor nan_to_num(const Shaped& s, const at::Tensor& a, std::optional<double> nan,
                        std::optional<double> positive, std::optional<double> negative) {
  const auto f = [&](const Term& x) {
    if (!x.dtype().is_float()) return x;
    const double most = largest(*s.common);
    const Term low = where(x == -kInfinity, negative.value_or(-most), x);
    const Term both = where(x == kInfinity, positive.value_or(most), low);
    return where(is_nan(x), nan.value_or(0.0), both);
  };
  return compute(s, f, a);
}
// Integers have neither: nothing is written.
at::Tensor& nan_to_num_(at::Tensor& self, std::optional<double> nan, std::optional<double> positive,
                        std::optional<double> negative) {
  if (c10::isIntegralType(self.scalar_type(), true)) return self;
  return InPlaceForm<UnaryMeta, nan_to_num, at::_ops::nan_to_num_>::call(self, nan, positive,
                                                                         negative);
}

// NOLINTBEGIN: PyTorch's macros
#define WEFT_UNARY(name, formula)                                                     \
  structured<at::meta::structured_##name, formula, at::_ops::name, at::_ops::name##_, \
             at::_ops::name##_out>(m)
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  WEFT_UNARY(exp, kReal<weft::exp>);
  WEFT_UNARY(exp2, kReal<exp2>);
  WEFT_UNARY(expm1, kReal<weft::expm1>);
  WEFT_UNARY(log, kReal<weft::log>);
  WEFT_UNARY(log2, kReal<log2>);
  WEFT_UNARY(log10, kMethod<&weft::Tensor::log10>);
  WEFT_UNARY(log1p, kReal<weft::log1p>);
  WEFT_UNARY(sqrt, kReal<weft::sqrt>);
  WEFT_UNARY(rsqrt, kReal<rsqrt>);
  WEFT_UNARY(reciprocal, kReal<reciprocal>);
  WEFT_UNARY(sin, kReal<sin>);
  WEFT_UNARY(cos, kReal<cos>);
  WEFT_UNARY(tan, kMethod<&weft::Tensor::tan>);
  WEFT_UNARY(asin, kMethod<&weft::Tensor::asin>);
  WEFT_UNARY(acos, kMethod<&weft::Tensor::acos>);
  WEFT_UNARY(atan, kMethod<&weft::Tensor::atan>);
  WEFT_UNARY(sinh, kMethod<&weft::Tensor::sinh>);
  WEFT_UNARY(cosh, kMethod<&weft::Tensor::cosh>);
  WEFT_UNARY(tanh, kReal<weft::tanh>);
  WEFT_UNARY(asinh, kMethod<&weft::Tensor::asinh>);
  WEFT_UNARY(acosh, kMethod<&weft::Tensor::acosh>);
  WEFT_UNARY(atanh, kMethod<&weft::Tensor::atanh>);
  WEFT_UNARY(erf, kReal<weft::erf>);
  WEFT_UNARY(sigmoid, kReal<weft::sigmoid>);
  WEFT_UNARY(sinc, kReal<sinc>);
  WEFT_UNARY(neg, kPlain<neg>);
  WEFT_UNARY(sign, kPlain<sign>);
  WEFT_UNARY(sgn, kPlain<sign>);
  WEFT_UNARY(floor, kPlain<rounded<Op::FLOOR>>);
  WEFT_UNARY(ceil, kPlain<rounded<Op::CEIL>>);
  WEFT_UNARY(trunc, kPlain<rounded<Op::TRUNC>>);
  WEFT_UNARY(round, kPlain<rounded<Op::ROUND>>);
  WEFT_UNARY(frac, kPlain<frac>);
  structured<at::meta::structured_round_decimals, round_decimals, at::_ops::round_decimals,
             at::_ops::round__decimals, at::_ops::round_decimals_out>(m);
  structured<UnaryMeta, abs, at::_ops::abs, at::_ops::abs_, at::_ops::abs_out>(m);
  structured<UnaryFloatMeta, kReal<angle>, at::_ops::angle, at::_ops::angle_out>(m);
  structured<UnaryFloatMeta, logit, at::_ops::logit, at::_ops::logit_, at::_ops::logit_out>(m);
  structured<UnaryMeta, nan_to_num, at::_ops::nan_to_num, at::_ops::nan_to_num_out>(m);
  native<at::_ops::nan_to_num_, nan_to_num_>(m);
}
#undef WEFT_UNARY
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
