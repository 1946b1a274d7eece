// Gradients of activations.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>

#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/elu_backward_meta.h>
#include <ATen/ops/gelu_backward_meta.h>
#include <ATen/ops/hardshrink_backward_meta.h>
#include <ATen/ops/hardsigmoid_backward_meta.h>
#include <ATen/ops/leaky_relu_backward_meta.h>
#include <ATen/ops/logit_backward_meta.h>
#include <ATen/ops/sigmoid_backward_meta.h>
#include <ATen/ops/silu_backward_meta.h>
#include <ATen/ops/softplus_backward_meta.h>
#include <ATen/ops/softshrink_backward_meta.h>
#include <ATen/ops/tanh_backward_meta.h>
#include <ATen/ops/threshold_backward_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "elementwise.h"
#include "halves.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/calls.h"
#include "tensor/term.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using TensorRef = const at::Tensor&;
using ScalarRef = const at::Scalar&;

// ---- from the result

Term sigmoid_backward(const Term& g, const Term& y) { return g * (1 - y) * y; }
Term tanh_backward(const Term& g, const Term& y) { return g * (1 - y * y); }

// ---- from the operand

Term silu_backward(const Term& g, const Term& x) {
  const Term s = sigmoid(x);
  return g * s * (1 + x * (1 - s));
}
// With n = e^2x + 2e^x, mish is x n / (n + 2), and tanh(softplus(x)) is t = n / (n + 2).
Term mish_backward(const Term& g, const Term& x) {
  const Term e = exp(at_most(x, 20)), n = e * (e + 2), t = n / (n + 2);
  return g * (t + x * sigmoid(x) * (1 - t * t));
}
Term hardsigmoid_backward(const Term& g, const Term& x) {
  return where((-3 < x) & (x < 3), g * (1.0 / 6), 0.0);
}
Term hardswish_backward(const Term& g, const Term& x) {
  const Term inside = g * (x / 3 + 0.5);
  return where((x < -3) | (x == -3), 0.0, where(x < 3, inside, g));
}

constexpr auto kSigmoidBackward = row<sigmoid_backward>("sigmoid_backward");
constexpr auto kTanhBackward = row<tanh_backward>("tanh_backward");
constexpr auto kSiluBackward = row<silu_backward>("silu_backward");
constexpr auto kMishBackward = row<mish_backward>("mish_backward");
constexpr auto kHardsigmoidBackward = row<hardsigmoid_backward>("hardsigmoid_backward");
constexpr auto kHardswishBackward = row<hardswish_backward>("hardswish_backward");

weft::Tensor threshold_backward(const Shaped& s, TensorRef grad, TensorRef self, ScalarRef most) {
  const auto f = [&](const Term& g, const Term& x) {
    const Term bound = x.like(number_of(s, most));
    return where((x < bound) | (x == bound), x.like(int64_t(0)), g);
  };
  return compute(s, f, grad, self);
}
weft::Tensor leaky_relu_backward(const Shaped& s, TensorRef grad, TensorRef self, ScalarRef slope,
                                 bool) {
  const auto f = [&](const Term& g, const Term& x) {
    return where(0 < x, g, g * real_of(s, slope));
  };
  return compute_floats(s, f, grad, self);
}
constexpr auto kEluBackward = row("elu_backward", [](double negative, double positive, double inner,
                                                     bool is_result, const Term& g, const Term& x) {
  const Term slope = is_result ? inner * (x + negative) : inner * negative * exp(x * inner);
  return where((x < 0) | (x == 0), g * slope, g * positive);
});
weft::Tensor elu_backward(const Shaped& s, TensorRef grad, ScalarRef alpha, ScalarRef scale,
                          ScalarRef input_scale, bool is_result, TensorRef self) {
  const double positive = real_of(s, scale), negative = real_of(s, alpha) * positive;
  return call_floats<kEluBackward>(s, negative, positive, real_of(s, input_scale), is_result, grad,
                                   self);
}

constexpr auto kGeluBackward = row("gelu_backward", [](bool by_tanh, const Term& g, const Term& x) {
  constexpr double root_half = 0x1.6a09e667f3bcdp-1, root_two_over_pi = 0x1.9884533d43651p-1;
  constexpr double inverse_root_two_pi = 0x1.9884533d43651p-2;
  if (by_tanh) {
    const Term inner = root_two_over_pi * (x + 0.044715 * (x * x * x)), t = tanh(inner);
    const Term slope = root_two_over_pi * (1 + 3 * 0.044715 * (x * x));
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope);
  }
  const Term density = exp(-0.5 * (x * x)) * inverse_root_two_pi;
  return g * (0.5 * (1 + erf(x * root_half)) + x * density);
});
weft::Tensor gelu_backward(const Shaped& s, TensorRef grad, TensorRef self, c10::string_view kind) {
  TORCH_CHECK(kind == "none" || kind == "tanh",
              "approximate argument must be either none or tanh.");
  return call_floats<kGeluBackward>(s, kind == "tanh", grad, self);
}

constexpr auto kSoftplusBackward =
    row("softplus_backward", [](double beta, double most, const Term& g, const Term& x) {
      const Term scaled = x * beta;
      return where(most < scaled, g, g * sigmoid(scaled));
    });
weft::Tensor softplus_backward(const Shaped& s, TensorRef grad, TensorRef self, ScalarRef beta,
                               ScalarRef most) {
  return call_floats<kSoftplusBackward>(s, real_of(s, beta), real_of(s, most), grad, self);
}
// Of both shrinks: nothing passes inside.
weft::Tensor shrink_backward(const Shaped& s, TensorRef grad, TensorRef self, ScalarRef lambda) {
  const double width = real_of(s, lambda);
  const auto f = [&](const Term& g, const Term& x) {
    const Term is_above = (-width < x) | (x == -width), is_below = (x < width) | (x == width);
    return where(is_above & is_below, 0.0, g);
  };
  return compute_floats(s, f, grad, self);
}
weft::Tensor logit_backward(const Shaped& s, TensorRef grad, TensorRef self,
                            std::optional<double> eps) {
  const auto f = [&](const Term& g, const Term& x) {
    const double least = eps.value_or(0), most = 1 - least;
    const Term is_outside = (x < least) | (most < x);
    return where(is_outside, x.like(eps ? 0.0 : std::nan("")), g / (x * (1 - x)));
  };
  return compute_floats(s, f, grad, self);
}
weft::Tensor hardtanh_backward(const Shaped& s, TensorRef grad, TensorRef self, ScalarRef least,
                               ScalarRef most) {
  const auto f = [&](const Term& g, const Term& x) {
    return where((real_of(s, least) < x) & (x < real_of(s, most)), g, 0.0);
  };
  return compute_floats(s, f, grad, self);
}
// The third operand is what the CPU's forward kept.
weft::Tensor log_sigmoid_backward(const Shaped& s, TensorRef grad, TensorRef self, TensorRef) {
  return compute_floats(
      s, [](const Term& g, const Term& x) { return g * sigmoid(-x); }, grad, self);
}

// ---- of two operands

std::tuple<at::Tensor, at::Tensor> prelu_backward(TensorRef grad, TensorRef self,
                                                  TensorRef weight) {
  const auto type = self.scalar_type();
  check_floats(type);
  for (const at::Tensor* other : {&grad, &weight}) {
    TORCH_CHECK(other->scalar_type() == type, "Found dtype ", other->scalar_type(),
                " but expected ", type);
  }
  const weft::Tensor g = operand(grad), x = operand(self), w = operand(weight);
  const weft::Tensor is_positive = x.gt(0.0);
  const weft::Tensor by_self = weft::Tensor::where(is_positive, g, w.mul(g));
  const weft::Tensor by_weight = weft::Tensor::where(is_positive, 0.0, x.mul(g));
  return {give(by_self, type), give(by_weight, weight.scalar_type())};
}

weft::Tensor glu_backward_of(TensorRef grad, TensorRef self, int64_t dim) {
  const auto type = computing_type(self.scalar_type());
  const auto [a, b] = halves_of(operand(self, type), dim);
  const weft::Tensor g = operand(grad, type), s = b.sigmoid(), by_a = g.mul(s);
  return weft::Tensor::cat({by_a, by_a.mul(1.0 - s).mul(a)}, dim);
}
void check_glu(TensorRef grad, TensorRef self, int64_t dim) {
  check_floats(self.scalar_type());
  TORCH_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  const int64_t axis = at::maybe_wrap_dim(dim, self.dim()), size = self.size(axis);
  TORCH_CHECK(size % 2 == 0, "Halving dimension must be even, but dimension ", axis, " is size ",
              size);
  TORCH_CHECK(grad.scalar_type() == self.scalar_type(), "Found dtype ", grad.scalar_type(),
              " but expected ", self.scalar_type());
  at::DimVector half(self.sizes());
  half[size_t(axis)] /= 2;
  TORCH_CHECK(at::infer_size_dimvector(grad.sizes(), half) == half, "the gradient has shape ",
              grad.sizes(), "; it must broadcast to ", half);
}
at::Tensor glu_backward(TensorRef grad, TensorRef self, int64_t dim) {
  check_glu(grad, self, dim);
  at::Tensor result = empty(self.sizes(), self.scalar_type());
  if (self.numel() != 0) put(result, glu_backward_of(grad, self, dim));
  return result;
}
at::Tensor& glu_backward_out(TensorRef grad, TensorRef self, int64_t dim, at::Tensor& result) {
  check_glu(grad, self, dim);
  at::native::resize_output(result, self.sizes());
  if (self.numel() != 0) put(result, glu_backward_of(grad, self, dim));
  return result;
}

// NOLINTBEGIN: PyTorch's macros
#define WEFT_BACKWARD(name, formula)                                                     \
  structured<at::meta::structured_##name##_backward, formula, at::_ops::name##_backward, \
             at::_ops::name##_backward_grad_input>(m)
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  WEFT_BACKWARD(sigmoid, kCallOnFloats<kSigmoidBackward>);
  WEFT_BACKWARD(tanh, kCallOnFloats<kTanhBackward>);
  WEFT_BACKWARD(silu, kCallOnFloats<kSiluBackward>);
  WEFT_BACKWARD(hardsigmoid, kCallOnFloats<kHardsigmoidBackward>);
  WEFT_BACKWARD(threshold, threshold_backward);
  WEFT_BACKWARD(leaky_relu, leaky_relu_backward);
  WEFT_BACKWARD(elu, elu_backward);
  WEFT_BACKWARD(gelu, gelu_backward);
  WEFT_BACKWARD(softplus, softplus_backward);
  WEFT_BACKWARD(softshrink, shrink_backward);
  WEFT_BACKWARD(hardshrink, shrink_backward);
  WEFT_BACKWARD(logit, logit_backward);
  structured<BinaryMeta, hardtanh_backward, at::_ops::hardtanh_backward,
             at::_ops::hardtanh_backward_grad_input>(m);
  structured<SameTypesMeta, log_sigmoid_backward, at::_ops::log_sigmoid_backward,
             at::_ops::log_sigmoid_backward_grad_input>(m);
  native<at::_ops::hardswish_backward, FunctionalForm<BinaryMeta, kCallOnFloats<kHardswishBackward>,
                                                      at::_ops::hardswish_backward>::call>(m);
  native<at::_ops::mish_backward,
         FunctionalForm<BinaryMeta, kCallOnFloats<kMishBackward>, at::_ops::mish_backward>::call>(
      m);
  native<at::_ops::_prelu_kernel_backward, prelu_backward>(m);
  native<at::_ops::glu_backward, glu_backward>(m);
  native<at::_ops::glu_backward_grad_input, glu_backward_out>(m);
}
#undef WEFT_BACKWARD
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
