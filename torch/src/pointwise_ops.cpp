// Elementwise arithmetic.
#include <ATen/ops/add_meta.h>
#include <ATen/ops/exp_meta.h>
#include <ATen/ops/mul_meta.h>
#include <torch/library.h>

#include "convert.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

weft::Tensor add(const Shaped& s, const at::Tensor& a, const at::Tensor& b,
                 const at::Scalar& alpha) {
  const weft::Tensor y = s.in(b);
  const bool is_one = !alpha.isFloatingPoint() ? alpha.toLong() == 1 : alpha.toDouble() == 1;
  return s.in(a).add(is_one ? y : y.mul(number(alpha, *s.common)));
}
weft::Tensor mul(const Shaped& s, const at::Tensor& a, const at::Tensor& b) {
  return s.in(a).mul(s.in(b));
}
weft::Tensor exp(const Shaped& s, const at::Tensor& a) { return s.in(a).exp(); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  structured<at::meta::structured_add_Tensor, add, at::_ops::add_Tensor, at::_ops::add__Tensor,
             at::_ops::add_out>(m);
  structured<at::meta::structured_mul_Tensor, mul, at::_ops::mul_Tensor, at::_ops::mul__Tensor,
             at::_ops::mul_out>(m);
  structured<at::meta::structured_exp, exp, at::_ops::exp, at::_ops::exp_, at::_ops::exp_out>(m);
}

}  // namespace
}  // namespace weft::pytorch
