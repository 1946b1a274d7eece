// Complex numbers: pairs of reals on a last axis.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add_meta.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/neg_meta.h>
#include <ATen/ops/result_type_native.h>
#include <ATen/ops/sgn_meta.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/sum_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "complex.h"
#include "complex_kernels.h"
#include "native.h"
#include "new_tensors.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

Complex product(const Complex& a, const Complex& b) {
  return {a.re.mul(b.re).sub(a.im.mul(b.im)), a.re.mul(b.im).add(a.im.mul(b.re))};
}

// -------------------------------------------------------------------------------------- arithmetic

template <bool subtracts>
weft::Tensor sum_of(const Shaped& s, const at::Tensor& a, const at::Tensor& b,
                    const at::Scalar& alpha) {
  const c10::ScalarType type = *s.common;
  const Complex x = complex_of(a, type);
  Complex y = complex_of(b, type);
  if (alpha.toComplexDouble() != c10::complex<double>(1)) y = product(y, constant(alpha, type));
  if (subtracts) return joined({x.re.sub(y.re), x.im.sub(y.im)}, s.out().sizes());
  return joined({x.re.add(y.re), x.im.add(y.im)}, s.out().sizes());
}

weft::Tensor mul(const Shaped& s, const at::Tensor& a, const at::Tensor& b) {
  return joined(product(complex_of(a, *s.common), complex_of(b, *s.common)), s.out().sizes());
}

// Scaled by the larger part of what is divided by: squares of it do not overflow.
weft::Tensor div(const Shaped& s, const at::Tensor& a, const at::Tensor& b) {
  const Complex x = complex_of(a, *s.common), y = complex_of(b, *s.common);
  const weft::Tensor scale = y.re.abs().maximum(y.im.abs());
  const weft::Tensor c = y.re.div(scale), d = y.im.div(scale);
  const weft::Tensor by = c.mul(c).add(d.mul(d)).mul(scale);
  const weft::Tensor re = x.re.mul(c).add(x.im.mul(d)).div(by);
  const weft::Tensor im = x.im.mul(c).sub(x.re.mul(d)).div(by);
  return joined({re, im}, s.out().sizes());
}

// With a number: the type of a real tensor becomes complex.
enum class Sum : uint8_t { kAdd, kSubtract };

c10::ScalarType complex_type(const at::Tensor& self) {
  if (self.is_complex()) return self.scalar_type();
  return self.scalar_type() == c10::kDouble ? c10::kComplexDouble : c10::kComplexFloat;
}
weft::Tensor scaled(const at::Tensor& self, const at::Scalar& by) {
  const c10::ScalarType type = complex_type(self);
  return joined(product(complex_of(self, type), constant(by, type)), self.sizes());
}
weft::Tensor shifted(const at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha,
                     Sum sum) {
  const c10::ScalarType type = complex_type(self);
  const c10::complex<double> by = other.toComplexDouble() * alpha.toComplexDouble();
  const Complex x = complex_of(self, type), y = constant(sum == Sum::kAdd ? by : -by, type);
  return joined({x.re.add(y.re), x.im.add(y.im)}, self.sizes());
}
at::Scalar inverse(const at::Scalar& scalar) {
  return c10::complex<double>(1) / scalar.toComplexDouble();
}

at::Tensor given(const at::Tensor& self, const weft::Tensor& value) {
  at::Tensor out = empty_like(self, complex_type(self));
  if (out.numel() != 0) put(out, value);
  return out;
}
at::Tensor& given_in(at::Tensor& self, const weft::Tensor& value) {
  TORCH_CHECK(self.is_complex(), "result type ", complex_type(self),
              " can't be cast to the desired output type ", self.scalar_type());
  if (self.numel() != 0) put(self, value);
  return self;
}
at::Tensor mul_scalar(const at::Tensor& self, const at::Scalar& by) {
  return given(self, scaled(self, by));
}
at::Tensor& mul_scalar_(at::Tensor& self, const at::Scalar& by) {
  return given_in(self, scaled(self, by));
}
at::Tensor div_scalar(const at::Tensor& self, const at::Scalar& by) {
  return given(self, scaled(self, inverse(by)));
}
at::Tensor& div_scalar_(at::Tensor& self, const at::Scalar& by) {
  return given_in(self, scaled(self, inverse(by)));
}
template <Sum sum>
at::Tensor sum_scalar(const at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha) {
  return given(self, shifted(self, other, alpha, sum));
}
template <Sum sum>
at::Tensor& sum_scalar_(at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha) {
  return given_in(self, shifted(self, other, alpha, sum));
}

weft::Tensor neg(const Shaped&, const at::Tensor& a) { return handle(a).neg(); }

weft::Tensor sgn(const Shaped& s, const at::Tensor& a) {
  const Complex z = complex_of(a, s.out().scalar_type());
  const weft::Tensor size = size_of(z);
  const weft::Tensor is_zero = size.eq(0.0);
  const weft::Tensor by = weft::Tensor::where(is_zero, size.ones_like(), size);
  return joined({z.re.div(by), z.im.div(by)}, s.out().sizes());
}

// ------------------------------------------------------------------------------------------- parts

void put_real(const at::Tensor& out, const weft::Tensor& value) {
  if (out.numel() == 0) return;
  if (!out.is_complex()) return put(out, value);
  put(out, joined({value, value.zeros_like()}, out.sizes()));
}

template <auto part>
at::Tensor part_of(const at::Tensor& self) {
  at::Tensor out = empty_like(self, real_type(self.scalar_type()));
  put_real(out, part(complex_of(self, self.scalar_type())));
  return out;
}
template <auto part>
at::Tensor& part_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(c10::canCast(real_type(self.scalar_type()), out.scalar_type()), "result type ",
              real_type(self.scalar_type()), " can't be cast to the desired output type ",
              out.scalar_type());
  at::native::resize_output(out, self.sizes());
  put_real(out, part(complex_of(self, self.scalar_type())));
  return out;
}
weft::Tensor angle_of(const Complex& z) { return z.im.atan2(z.re); }

weft::Tensor conjugate(const at::Tensor& self) {
  const Complex z = complex_of(self, self.scalar_type());
  return joined({z.re, z.im.neg()}, self.sizes());
}
at::Tensor conj_physical(const at::Tensor& self) {
  at::Tensor out = empty_like(self, self.scalar_type());
  if (out.numel() != 0) put(out, conjugate(self));
  return out;
}
at::Tensor& conj_physical_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(out.is_complex(), "result type ", self.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  at::native::resize_output(out, self.sizes());
  if (out.numel() != 0) put(out, conjugate(self));
  return out;
}
at::Tensor& conj_physical_(at::Tensor& self) {
  return self.is_complex() ? conj_physical_out(self, self) : self;
}

// ------------------------------------------------------------------------------------ of two reals

void check_reals(const char* what, const at::Tensor& a, const at::Tensor& b) {
  const auto is_fine = [](c10::ScalarType t) {
    return t == c10::kFloat || t == c10::kDouble || t == c10::kHalf;
  };
  TORCH_CHECK(is_fine(a.scalar_type()) && is_fine(b.scalar_type()),
              "Expected both inputs to be Half, Float or Double tensors but got ", a.scalar_type(),
              " and ", b.scalar_type());
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "Expected object of scalar type ",
              a.scalar_type(), " but got scalar type ", b.scalar_type(), " for second argument of ",
              what);
}

Complex from_parts(const weft::Tensor& a, const weft::Tensor& b) { return {a, b}; }
Complex from_polar(const weft::Tensor& size, const weft::Tensor& angle) {
  return {size.mul(angle.cos()), size.mul(angle.sin())};
}

template <auto formula>
at::Tensor& of_reals_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  check_reals("complex", a, b);
  const c10::ScalarType type = c10::toComplexType(a.scalar_type());
  TORCH_CHECK(out.scalar_type() == type, "Expected object of scalar type ", type,
              " but got scalar type ", out.scalar_type(), " for argument 'out'");
  elementwise_output(out, type, a, b);
  if (out.numel() != 0) put(out, joined(formula(operand(a), operand(b)), out.sizes()));
  return out;
}
template <auto formula>
at::Tensor of_reals(const at::Tensor& a, const at::Tensor& b) {
  check_reals("complex", a, b);
  const c10::ScalarType type = c10::toComplexType(a.scalar_type());
  at::Tensor out = elementwise_output({}, type, a, b);
  if (out.numel() != 0) put(out, joined(formula(operand(a), operand(b)), out.sizes()));
  return out;
}

// -------------------------------------------------------------------------------------- reductions

std::vector<int64_t> axes_of(const at::Tensor& self, at::OptionalIntArrayRef dim) {
  const auto chosen = at::dim_list_to_bitset(dim, size_t(self.dim()));
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < self.dim(); i++) {
    if ((dim && dim->empty()) || chosen[size_t(i)]) axes.push_back(i);
  }
  return axes;
}

template <bool divides>
weft::Tensor reduced(const Shaped& s, const at::Tensor& self, at::OptionalIntArrayRef dim,
                     bool keepdim, std::optional<c10::ScalarType>) {
  const bool is_real = !s.out().is_complex();
  const Complex z = complex_of(self, is_real ? self.scalar_type() : s.out().scalar_type());
  weft::Tensor re = z.re, im = z.im.expand(z.re.shape());
  const std::vector<int64_t> axes = axes_of(self, dim);
  if (!axes.empty()) {
    re = re.sum(axes, keepdim);
    im = im.sum(axes, keepdim);
  }
  if (divides) {
    int64_t count = 1;
    for (const int64_t axis : axes) count *= self.size(axis);
    re = re.mul(1 / double(count));
    im = im.mul(1 / double(count));
  }
  if (is_real) return re;
  return joined({re, im}, s.out().sizes());
}

template <bool divides>
at::Tensor reduced_all(const at::Tensor& self, std::optional<c10::ScalarType> dtype) {
  const c10::ScalarType type = dtype.value_or(self.scalar_type());
  TORCH_CHECK(c10::isComplexType(type), "weft: a sum of complex numbers as ", type);
  const Complex z = complex_of(self, type);
  const double scale = divides ? 1 / double(self.numel()) : 1;
  const at::Tensor out = empty({}, type);
  put(out, joined({z.re.sum().mul(scale), z.im.expand(z.re.shape()).sum().mul(scale)}, Ints()));
  return out;
}

// ------------------------------------------------------------------------------------- comparisons

enum class Equality : uint8_t { kEqual, kDifferent };

weft::Tensor is_equal(const Complex& a, const Complex& b, Equality wanted) {
  const weft::Tensor both = a.re.eq(b.re).bitwise_and(a.im.eq(b.im));
  return wanted == Equality::kEqual ? both : both.logical_not();
}
template <Equality wanted>
at::Tensor compared(const at::Tensor& a, const at::Tensor& b) {
  const c10::ScalarType type = at::native::result_type(a, b);
  at::Tensor out = elementwise_output({}, c10::kBool, as_cast(a, type), as_cast(b, type));
  if (out.numel() != 0) put(out, is_equal(complex_of(a, type), complex_of(b, type), wanted));
  return out;
}
template <Equality wanted>
at::Tensor compared_scalar(const at::Tensor& self, const at::Scalar& other) {
  const c10::ScalarType type = complex_type(self);
  at::Tensor out = empty_like(self, c10::kBool);
  if (out.numel() != 0) put(out, is_equal(complex_of(self, type), constant(other, type), wanted));
  return out;
}

// ----------------------------------------------------------------------------------------- padding

// Pairs of sizes from the last axis on, in front and behind.
at::Tensor constant_pad(const at::Tensor& self, at::IntArrayRef pad, const at::Scalar& value) {
  TORCH_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  const size_t rank = size_t(self.dim());
  TORCH_CHECK(pad.size() / 2 <= rank,
              "Length of pad should be no more than twice the number of dimensions of the input. "
              "Pad length is ",
              pad.size(), "while the input has ", rank, "dimensions.");
  std::vector<std::pair<int64_t, int64_t>> around(rank, {0, 0});
  std::vector<int64_t> sizes = self.sizes().vec();
  for (size_t i = 0; i < pad.size() / 2; i++) {
    around[rank - 1 - i] = {pad[2 * i], pad[2 * i + 1]};
    sizes[rank - 1 - i] += pad[2 * i] + pad[2 * i + 1];
    TORCH_CHECK(sizes[rank - 1 - i] >= 0, "The input size ", self.sizes()[rank - 1 - i],
                ", plus negative padding ", pad[2 * i], " and ", pad[2 * i + 1],
                " resulted in a negative output size, which is invalid. Check dimension ",
                rank - 1 - i, " of your input.");
  }
  at::Tensor out = empty(sizes, self.scalar_type());
  if (out.numel() == 0) return out;
  const Complex z = complex_of(self, self.scalar_type());
  const c10::complex<double> by = value.toComplexDouble();
  put(out, joined({z.re.pad(around, by.real()), z.im.pad(around, by.imag())}, out.sizes()));
  return out;
}

// ------------------------------------------------------------------------------------ registration

bool add_kernels() noexcept {
  add_complex_structured<at::meta::structured_add_Tensor, sum_of<false>, at::_ops::add_Tensor,
                         at::_ops::add__Tensor, at::_ops::add_out>();
  add_complex_structured<at::meta::structured_sub_Tensor, sum_of<true>, at::_ops::sub_Tensor,
                         at::_ops::sub__Tensor, at::_ops::sub_out>();
  add_complex_structured<at::meta::structured_mul_Tensor, mul, at::_ops::mul_Tensor,
                         at::_ops::mul__Tensor, at::_ops::mul_out>();
  add_complex_structured<at::meta::structured_div_Tensor, div, at::_ops::div_Tensor,
                         at::_ops::div__Tensor, at::_ops::div_out>();
  add_complex_structured<at::meta::structured_neg, neg, at::_ops::neg, at::_ops::neg_,
                         at::_ops::neg_out>();
  add_complex_structured<at::meta::structured_sgn, sgn, at::_ops::sgn, at::_ops::sgn_,
                         at::_ops::sgn_out>();
  add_complex_structured<at::meta::structured_sum_dim_IntList, reduced<false>,
                         at::_ops::sum_dim_IntList, at::_ops::sum_IntList_out>();
  add_complex_structured<at::meta::structured_mean_dim, reduced<true>, at::_ops::mean_dim,
                         at::_ops::mean_out>();
  add_complex_kernel<at::_ops::mul_Scalar, mul_scalar>();
  add_complex_kernel<at::_ops::mul__Scalar, mul_scalar_>();
  add_complex_kernel<at::_ops::div_Scalar, div_scalar>();
  add_complex_kernel<at::_ops::div__Scalar, div_scalar_>();
  add_complex_kernel<at::_ops::add_Scalar, sum_scalar<Sum::kAdd>>();
  add_complex_kernel<at::_ops::add__Scalar, sum_scalar_<Sum::kAdd>>();
  add_complex_kernel<at::_ops::sub_Scalar, sum_scalar<Sum::kSubtract>>();
  add_complex_kernel<at::_ops::sub__Scalar, sum_scalar_<Sum::kSubtract>>();
  add_complex_kernel<at::_ops::abs, part_of<size_of>>();
  add_complex_kernel<at::_ops::abs_out, part_out<size_of>>();
  add_complex_kernel<at::_ops::angle, part_of<angle_of>>();
  add_complex_kernel<at::_ops::angle_out, part_out<angle_of>>();
  add_complex_kernel<at::_ops::conj_physical, conj_physical>();
  add_complex_kernel<at::_ops::_conj_physical, conj_physical>();
  add_complex_kernel<at::_ops::conj_physical_out, conj_physical_out>();
  add_complex_kernel<at::_ops::constant_pad_nd, constant_pad>();
  add_complex_kernel<at::_ops::sum, reduced_all<false>>();
  add_complex_kernel<at::_ops::mean, reduced_all<true>>();
  add_complex_kernel<at::_ops::eq_Tensor, compared<Equality::kEqual>>();
  add_complex_kernel<at::_ops::ne_Tensor, compared<Equality::kDifferent>>();
  add_complex_kernel<at::_ops::eq_Scalar, compared_scalar<Equality::kEqual>>();
  add_complex_kernel<at::_ops::ne_Scalar, compared_scalar<Equality::kDifferent>>();
  return true;
}
const bool kAdded = add_kernels();

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::conj_physical_, conj_physical_, Others::kGiven>(m);
  native<at::_ops::complex, of_reals<from_parts>>(m);
  native<at::_ops::complex_out, of_reals_out<from_parts>, Others::kGiven>(m);
  native<at::_ops::polar, of_reals<from_polar>>(m);
  native<at::_ops::polar_out, of_reals_out<from_polar>, Others::kGiven>(m);
}

}  // namespace
}  // namespace weft::pytorch
