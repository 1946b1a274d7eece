// Logic of truth values and of bits, and what integers divide.
#include <cstdint>

#include <ATen/ops/bitwise_and_meta.h>
#include <ATen/ops/bitwise_left_shift_meta.h>
#include <ATen/ops/bitwise_not_meta.h>
#include <ATen/ops/bitwise_or_meta.h>
#include <ATen/ops/bitwise_right_shift_meta.h>
#include <ATen/ops/bitwise_xor_meta.h>
#include <ATen/ops/gcd_meta.h>
#include <ATen/ops/lcm_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "elementwise.h"
#include "ir/op.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/operand.h"
#include "tensor/term.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

Term is_true(const Term& x) { return x.dtype().is_bool() ? x : x != x.like(int64_t(0)); }

template <Op op>
Term logical(const Term& x, const Term& y) {
  return apply(op, is_true(x), is_true(y));
}
weft::Tensor logical_not(const Shaped&, const at::Tensor& a) {
  return tensor_of(!is_true(Term(read(operand(a)))), dtypes::bool_);
}
// Of any dtype; without an output, bools.
struct LogicalNotMeta : at::TensorIteratorBase {
  void meta(const at::Tensor& self) {
    at::TensorIteratorConfig config;
    config.check_all_same_dtype(false).add_output(maybe_get_output()).add_const_input(self);
    if (!maybe_get_output().defined()) config.declare_static_dtype(at::kBool);
    build(config);
  }
};

// Floats have no bits, and bools none to shift or divide: they are refused at the call.
enum class Bools : uint8_t { kTaken, kRefused };
template <auto f, Bools bools, const char* name>
weft::Tensor of_integers(const Shaped& s, const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isIntegralType(*s.common, bools == Bools::kTaken), '"', name,
                              "_cpu\" not implemented for '", *s.common, "'");
  return compute(s, f, a, b);
}
template <auto f, const char* name>
constexpr auto kOfBits = of_integers<f, Bools::kTaken, name>;
template <auto f, const char* name>
constexpr auto kOfIntegers = of_integers<f, Bools::kRefused, name>;

// What PyTorch calls them. NOLINTBEGIN: arguments of templates
constexpr char kAnd[] = "bitwise_and", kOr[] = "bitwise_or", kXor[] = "bitwise_xor";
constexpr char kLeft[] = "lshift", kRight[] = "rshift", kGcd[] = "gcd", kLcm[] = "lcm";
// NOLINTEND

template <Op op>
Term bits(const Term& x, const Term& y) {
  return apply(op, x, y);
}
Term invert(const Term& x) { return !x; }

// Past the width all bits are gone: what is left is 0, or the sign.
Term shift_right(const Term& x, const Term& y) {
  const Term most = y.like(int64_t(x.dtype().bits() - 1)), zero = y.like(int64_t(0));
  const bool is_signed = y.dtype().is_signed();
  const Term is_far = is_signed ? (y < zero) | (most < y) : most < y;
  if (!x.dtype().is_signed()) return where(is_far, zero, apply(Op::SHR, x, y));
  return apply(Op::SHR, x, where(is_far, most, y));
}

// ---- by Euclid, as often as the longest chain of remainders of the width asks for

Term size_of(const Term& x) { return x.dtype().is_signed() ? apply(Op::MAX, x, -x) : x; }

Term gcd(const Term& x, const Term& y) {
  const int bits = x.dtype().bits() - int(x.dtype().is_signed());
  const Term zero = x.like(int64_t(0));
  Term a = size_of(x), b = size_of(y);
  for (int i = 0; i < bits * 3 / 2; i++) {  // 1.44 per bit
    const Term is_done = b == zero, rest = apply(Op::CMOD, a, b);
    a = where(is_done, a, b);
    b = where(is_done, zero, rest);
  }
  return size_of(a);
}
Term lcm(const Term& x, const Term& y) {
  const Term divisor = gcd(x, y), zero = x.like(int64_t(0));
  return where(divisor == zero, zero, size_of(apply(Op::CDIV, x, divisor) * y));
}

// NOLINTBEGIN: PyTorch's macros
#define WEFT_BITS(name, formula)                                                     \
  structured<at::meta::structured_##name##_Tensor, formula, at::_ops::name##_Tensor, \
             at::_ops::name##__Tensor, at::_ops::name##_Tensor_out>(m)
#define WEFT_LOGICAL(name, op)                                                       \
  structured<ComparisonMeta, kPlain<logical<op>>, at::_ops::name, at::_ops::name##_, \
             at::_ops::name##_out>(m)
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  WEFT_BITS(bitwise_and, (kOfBits<bits<Op::AND>, kAnd>));
  WEFT_BITS(bitwise_or, (kOfBits<bits<Op::OR>, kOr>));
  WEFT_BITS(bitwise_xor, (kOfBits<bits<Op::XOR>, kXor>));
  WEFT_BITS(bitwise_left_shift, (kOfIntegers<bits<Op::SHL>, kLeft>));
  WEFT_BITS(bitwise_right_shift, (kOfIntegers<shift_right, kRight>));
  structured<at::meta::structured_bitwise_not, kPlain<invert>, at::_ops::bitwise_not,
             at::_ops::bitwise_not_, at::_ops::bitwise_not_out>(m);
  WEFT_LOGICAL(logical_and, Op::AND);
  WEFT_LOGICAL(logical_or, Op::OR);
  WEFT_LOGICAL(logical_xor, Op::XOR);
  structured<LogicalNotMeta, logical_not, at::_ops::logical_not, at::_ops::logical_not_,
             at::_ops::logical_not_out>(m);

  structured<at::meta::structured_gcd, kOfIntegers<gcd, kGcd>, at::_ops::gcd, at::_ops::gcd_,
             at::_ops::gcd_out>(m);
  structured<at::meta::structured_lcm, kOfIntegers<lcm, kLcm>, at::_ops::lcm, at::_ops::lcm_,
             at::_ops::lcm_out>(m);

  using Left = WithNumber<BinaryMeta, kOfIntegers<bits<Op::SHL>, kLeft>,
                          at::_ops::__lshift___Tensor, at::_ops::__ilshift___Tensor>;
  using Right = WithNumber<BinaryMeta, kOfIntegers<shift_right, kRight>,
                           at::_ops::__rshift___Tensor, at::_ops::__irshift___Tensor>;
  native<at::_ops::__lshift___Scalar, Left::functional<>>(m);
  native<at::_ops::__ilshift___Scalar, Left::in_place<>>(m);
  native<at::_ops::__rshift___Scalar, Right::functional<>>(m);
  native<at::_ops::__irshift___Scalar, Right::in_place<>>(m);
  native<at::_ops::__lshift___Tensor, FunctionalForm<BinaryMeta, kOfIntegers<bits<Op::SHL>, kLeft>,
                                                     at::_ops::__lshift___Tensor>::call>(m);
  native<at::_ops::__ilshift___Tensor, InPlaceForm<BinaryMeta, kOfIntegers<bits<Op::SHL>, kLeft>,
                                                   at::_ops::__ilshift___Tensor>::call>(m);
  native<at::_ops::__rshift___Tensor, FunctionalForm<BinaryMeta, kOfIntegers<shift_right, kRight>,
                                                     at::_ops::__rshift___Tensor>::call>(m);
  native<at::_ops::__irshift___Tensor, InPlaceForm<BinaryMeta, kOfIntegers<shift_right, kRight>,
                                                   at::_ops::__irshift___Tensor>::call>(m);
}
#undef WEFT_BITS
#undef WEFT_LOGICAL
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
