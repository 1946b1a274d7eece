// Comparisons, bounds, and what is made of comparing.
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/clamp_max_meta.h>
#include <ATen/ops/clamp_meta.h>
#include <ATen/ops/clamp_min_meta.h>
#include <ATen/ops/eq_meta.h>
#include <ATen/ops/fmax_meta.h>
#include <ATen/ops/fmin_meta.h>
#include <ATen/ops/ge_meta.h>
#include <ATen/ops/gt_meta.h>
#include <ATen/ops/heaviside_meta.h>
#include <ATen/ops/isin_meta.h>
#include <ATen/ops/isneginf_meta.h>
#include <ATen/ops/isposinf_meta.h>
#include <ATen/ops/le_meta.h>
#include <ATen/ops/lt_meta.h>
#include <ATen/ops/maximum_meta.h>
#include <ATen/ops/minimum_meta.h>
#include <ATen/ops/ne_meta.h>
#include <ATen/ops/result_type_native.h>
#include <ATen/ops/signbit_meta.h>
#include <torch/library.h>

#include "convert.h"
#include "elementwise.h"
#include "ir/op.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/operand.h"
#include "tensor/term.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

constexpr double kInfinity = HUGE_VAL;

Term eq(const Term& x, const Term& y) { return x == y; }
Term ne(const Term& x, const Term& y) { return x != y; }
Term lt(const Term& x, const Term& y) { return x < y; }
Term gt(const Term& x, const Term& y) { return y < x; }
// not (y < x) would hold with NaN
Term le(const Term& x, const Term& y) {
  return x.dtype().is_float() ? (x < y) | (x == y) : !(y < x);
}
Term ge(const Term& x, const Term& y) {
  return x.dtype().is_float() ? (y < x) | (x == y) : !(x < y);
}

template <auto f>
weft::Tensor with_scalar(const Shaped& s, const at::Tensor& a, const at::Scalar& b) {
  const auto g = [&](const Term& x) { return f(x, x.like(number_of(b))); };
  return compute(s, g, a);
}

// ---- the larger, the smaller: NaN wins

Term maximum(const Term& x, const Term& y) {
  return x.dtype().is_bool() ? x | y : apply(Op::MAX, x, y);
}
Term minimum(const Term& x, const Term& y) {
  return x.dtype().is_bool() ? x & y : apply(Op::MIN, x, y);
}
// ... NaN loses
Term fmax(const Term& x, const Term& y) {
  const Term larger = maximum(x, y);
  return x.dtype().is_float() ? where(is_nan(x), y, where(is_nan(y), x, larger)) : larger;
}
Term fmin(const Term& x, const Term& y) {
  const Term smaller = minimum(x, y);
  return x.dtype().is_float() ? where(is_nan(x), y, where(is_nan(y), x, smaller)) : smaller;
}

// ---- bounds

at::OptionalScalarRef ref(const std::optional<at::Scalar>& x) {
  return x ? at::OptionalScalarRef(&*x) : at::OptionalScalarRef();
}
at::OptionalTensorRef ref(const std::optional<at::Tensor>& x) {
  return x && x->defined() ? at::OptionalTensorRef(*x) : at::OptionalTensorRef();
}
struct ClampMeta : at::meta::structured_clamp {
  void meta(const at::Tensor& self, const std::optional<at::Scalar>& least,
            const std::optional<at::Scalar>& most) {
    structured_clamp::meta(self, ref(least), ref(most));
  }
};
struct ClampTensorMeta : at::meta::structured_clamp_Tensor {
  void meta(const at::Tensor& self, const std::optional<at::Tensor>& least,
            const std::optional<at::Tensor>& most) {
    structured_clamp_Tensor::meta(self, ref(least), ref(most));
  }
};

weft::Tensor clamp(const Shaped& s, const at::Tensor& self, const std::optional<at::Scalar>& least,
                   const std::optional<at::Scalar>& most) {
  const auto f = [&](Term x) {
    const bool is_nan =
        (least && std::isnan(real_of(*least))) || (most && std::isnan(real_of(*most)));
    if (is_nan) return x.like(std::nan(""));
    if (least) x = maximum(x, x.like(number_of(s, *least)));
    if (most) x = minimum(x, x.like(number_of(s, *most)));
    return x;
  };
  return compute(s, f, self);
}
weft::Tensor clamp_min(const Shaped& s, const at::Tensor& self, const at::Scalar& least) {
  return clamp(s, self, least, {});
}
weft::Tensor clamp_max(const Shaped& s, const at::Tensor& self, const at::Scalar& most) {
  return clamp(s, self, {}, most);
}
weft::Tensor clamp_tensor(const Shaped& s, const at::Tensor& self,
                          const std::optional<at::Tensor>& least,
                          const std::optional<at::Tensor>& most) {
  const Ints shape = ints(s.out().sizes());
  const auto f = [&](Term x) {
    if (least && least->defined()) x = maximum(x, term_of(*least, shape, *s.common));
    if (most && most->defined()) x = minimum(x, term_of(*most, shape, *s.common));
    return x;
  };
  return compute(s, f, self);
}

// ---- of one operand

// What holds of no integer.
template <auto f>
weft::Tensor of_float(const Shaped&, const at::Tensor& a) {
  if (a.is_floating_point()) return tensor_of(f(Term(read(operand(a)))), dtypes::bool_);
  return number(false, at::kBool);
}
constexpr auto kIsNan = of_float<is_nan>;
constexpr auto kIsInf =
    of_float<[](const Term& x) { return (x == kInfinity) | (x == -kInfinity); }>;
constexpr auto kIsPositiveInf = of_float<[](const Term& x) { return x == kInfinity; }>;
constexpr auto kIsNegativeInf = of_float<[](const Term& x) { return x == -kInfinity; }>;

weft::Tensor signbit(const Shaped&, const at::Tensor& a) {
  const Term x(read(operand(a)));
  if (x.dtype().is_float()) return tensor_of(sign_bit(x), dtypes::bool_);
  if (!x.dtype().is_signed()) return number(false, at::kBool);
  return tensor_of(x < 0, dtypes::bool_);
}

Term heaviside(const Term& x, const Term& at_zero) {
  const Term zero = x.like(int64_t(0));
  return where(x == zero, at_zero, cast(zero < x, x.dtype()));
}

// ---- sets

weft::Tensor isin_of(const weft::Tensor& elements, const weft::Tensor& test, bool invert) {
  if (test.numel() == 0) return elements.full_like(invert, dtypes::bool_);
  const weft::Tensor equal = elements.unsqueeze(-1).eq(test.flatten());
  const weft::Tensor is_in = equal.any(std::vector<int64_t>{-1});
  return invert ? is_in.logical_not() : is_in;
}
weft::Tensor isin(const Shaped&, const at::Tensor& elements, const at::Tensor& test,
                  bool /*unique*/, bool invert) {
  const auto type = at::native::result_type(elements, test);
  return isin_of(operand(elements, type), operand(test, type), invert);
}
weft::Tensor isin_scalar(const Shaped&, const at::Tensor& elements, const at::Scalar& test,
                         bool /*unique*/, bool invert) {
  const auto type = at::native::result_type(elements, test);
  return isin_of(operand(elements, type), number(test, type), invert);
}
weft::Tensor scalar_isin(const Shaped&, const at::Scalar& element, const at::Tensor& test,
                         bool /*unique*/, bool invert) {
  const auto type = at::native::result_type(element, test);
  return isin_of(number(element, type), operand(test, type), invert);
}

// PyTorch's own sets no shape of the result.
struct ScalarIsInMeta : at::impl::MetaBase {
  void meta(const at::Scalar&, const at::Tensor& test, bool, bool) {
    set_output_raw_strided(0, {}, {}, test.options().dtype(at::kBool));
  }
};

bool equal(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.device() == b.device(),
              "Cannot compare two tensors on different devices. Got: ", a.device(), " and ",
              b.device());
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "Expected object of data type ", a.scalar_type(),
              " but got data type ", b.scalar_type(), " for argument 'other'");
  if (a.sizes() != b.sizes()) return false;
  if (a.numel() == 0) return true;
  return operand(a).eq(operand(b)).all().item<bool>();
}

at::Tensor isnan_functional(const at::Tensor& a) {
  using Form = FunctionalForm<UnaryBoolMeta, kIsNan, at::_ops::isnan>;
  return Form::call(a);
}

// NOLINTBEGIN: PyTorch's macros
#define WEFT_COMPARISON(name)                                                                  \
  structured<at::meta::structured_##name##_Tensor, kPlain<name>, at::_ops::name##_Tensor,      \
             at::_ops::name##__Tensor, at::_ops::name##_Tensor_out>(m);                        \
  structured<at::meta::structured_##name##_Scalar, with_scalar<name>, at::_ops::name##_Scalar, \
             at::_ops::name##__Scalar, at::_ops::name##_Scalar_out>(m)
#define WEFT_BINARY(name, formula) \
  structured<at::meta::structured_##name, formula, at::_ops::name, at::_ops::name##_out>(m)
#define WEFT_BOUND(name, extreme)                                                            \
  structured<at::meta::structured_##name, name, at::_ops::name, at::_ops::name##_,           \
             at::_ops::name##_out>(m);                                                       \
  structured<at::meta::structured_##name##_Tensor, kPlain<extreme>, at::_ops::name##_Tensor, \
             at::_ops::name##__Tensor, at::_ops::name##_Tensor_out>(m)
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  WEFT_COMPARISON(eq);
  WEFT_COMPARISON(ne);
  WEFT_COMPARISON(lt);
  WEFT_COMPARISON(le);
  WEFT_COMPARISON(gt);
  WEFT_COMPARISON(ge);
  WEFT_BINARY(maximum, kPlain<maximum>);
  WEFT_BINARY(minimum, kPlain<minimum>);
  WEFT_BINARY(fmax, kPlain<fmax>);
  WEFT_BINARY(fmin, kPlain<fmin>);
  WEFT_BOUND(clamp_min, maximum);
  WEFT_BOUND(clamp_max, minimum);
  structured<ClampMeta, clamp, at::_ops::clamp, at::_ops::clamp_, at::_ops::clamp_out>(m);
  structured<ClampTensorMeta, clamp_tensor, at::_ops::clamp_Tensor, at::_ops::clamp__Tensor,
             at::_ops::clamp_Tensor_out>(m);
  WEFT_BINARY(isposinf, kIsPositiveInf);
  WEFT_BINARY(isneginf, kIsNegativeInf);
  WEFT_BINARY(signbit, signbit);
  native<at::_ops::isnan, isnan_functional>(m);
  native<at::_ops::isinf, FunctionalForm<UnaryBoolMeta, kIsInf, at::_ops::isinf>::call>(m);
  structured<at::meta::structured_heaviside, kPlain<heaviside>, at::_ops::heaviside,
             at::_ops::heaviside_, at::_ops::heaviside_out>(m);
  structured<at::meta::structured_isin_Tensor_Tensor, isin, at::_ops::isin_Tensor_Tensor,
             at::_ops::isin_Tensor_Tensor_out>(m);
  structured<at::meta::structured_isin_Tensor_Scalar, isin_scalar, at::_ops::isin_Tensor_Scalar,
             at::_ops::isin_Tensor_Scalar_out>(m);
  structured<ScalarIsInMeta, scalar_isin, at::_ops::isin_Scalar_Tensor,
             at::_ops::isin_Scalar_Tensor_out>(m);
  native<at::_ops::equal, equal>(m);
}
#undef WEFT_COMPARISON
#undef WEFT_BINARY
#undef WEFT_BOUND
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
