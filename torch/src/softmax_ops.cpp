// Softmax and its logarithm.

#include <cstdint>
#include <vector>

#include <ATen/ops/_log_softmax_backward_data_meta.h>
#include <ATen/ops/_log_softmax_meta.h>
#include <ATen/ops/_softmax_backward_data_meta.h>
#include <ATen/ops/_softmax_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "formulas.h"
#include "operators.h"
#include "structured.h"
#include "tensor/calls.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

// CPU's kernels are of floats alone.
void check_real(const char* what, const at::Tensor& x) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isFloatingType(x.scalar_type()), "\"", what,
                              "\" not implemented for '", x.scalar_type(), "'");
}

// Only a float16 is widened.
void check_widened(const at::Tensor& x, bool half_to_float) {
  TORCH_CHECK(!half_to_float || x.scalar_type() == at::kHalf,
              "conversion is supported for Half type only, got ", x.scalar_type());
}

weft::Tensor softmax(const Shaped&, const at::Tensor& x, int64_t dim, bool half_to_float) {
  check_real("softmax_lastdim_kernel_impl", x);
  check_widened(x, half_to_float);
  return wide_operand(x).softmax(dim);
}
weft::Tensor log_softmax(const Shaped&, const at::Tensor& x, int64_t dim, bool half_to_float) {
  check_real("log_softmax_lastdim_kernel_impl", x);
  check_widened(x, half_to_float);
  return wide_operand(x).log_softmax(dim);
}

// A scalar counts as a vector of one.
weft::Tensor sum_along(const weft::Tensor& x, int64_t dim) {
  return x.ndim() == 0 ? x : x.sum(std::vector<int64_t>{dim}, true);
}

// y (g - sum(g y))
constexpr auto kSoftmaxBackward =
    row("softmax_backward", [](int64_t dim, const weft::Tensor& g, const weft::Tensor& y) {
      const weft::Tensor product = g.mul(y);
      return product.sub(y.mul(sum_along(product, dim)));
    });
weft::Tensor softmax_backward(const Shaped&, const at::Tensor& gradient, const at::Tensor& output,
                              int64_t dim, at::ScalarType) {
  check_sizes("the output", output, gradient.sizes());
  check_real("softmax_backward_lastdim_kernel_impl", gradient);
  const weft::Tensor g = wide_operand(gradient);
  return call<kSoftmaxBackward>({g.dtype(), g.shape()}, dim, g,
                                wide_operand(output).cast(g.dtype()));
}
// g - exp(y) sum(g)
constexpr auto kLogSoftmaxBackward =
    row("log_softmax_backward", [](int64_t dim, const weft::Tensor& g, const weft::Tensor& y) {
      return g.sub(y.exp().mul(sum_along(g, dim)));
    });
weft::Tensor log_softmax_backward(const Shaped&, const at::Tensor& gradient,
                                  const at::Tensor& output, int64_t dim, at::ScalarType) {
  check_sizes("the output", output, gradient.sizes());
  check_real("softmax_backward_lastdim_kernel_impl", gradient);
  const weft::Tensor g = wide_operand(gradient);
  return call<kLogSoftmaxBackward>({g.dtype(), g.shape()}, dim, g,
                                   wide_operand(output).cast(g.dtype()));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  structured<at::meta::structured__softmax, softmax, at::_ops::_softmax, at::_ops::_softmax_out>(m);
  structured<at::meta::structured__log_softmax, log_softmax, at::_ops::_log_softmax,
             at::_ops::_log_softmax_out>(m);
  structured<at::meta::structured__softmax_backward_data, softmax_backward,
             at::_ops::_softmax_backward_data, at::_ops::_softmax_backward_data_out>(m);
  structured<at::meta::structured__log_softmax_backward_data, log_softmax_backward,
             at::_ops::_log_softmax_backward_data, at::_ops::_log_softmax_backward_data_out>(m);
}

}  // namespace
}  // namespace weft::pytorch
