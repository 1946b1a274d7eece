// Activations: elementwise ones, and those along an axis.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "ir/op.h"
#include "tensor/calls.h"
#include "tensor/operand.h"
#include "tensor/term.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

// NaN stays; at 0 the gradient is 0.
Term relu_of(const Term& x) { return where((x < 0) | (x == 0), 0.0, x); }

// Between both; at either the gradient is 0.
Term between(const Term& x, double least, double most) {
  const Term up = where((most < x) | (x == most), most, x);
  return where((x < least) | (x == least), least, up);
}

Term elu_of(const Term& x, double alpha) { return where(0 < x, x, alpha * expm1(at_most(x, 0))); }

// x tanh(softplus(x)): with n = e^2x + 2e^x it is x n / (n + 2).
Term mish_of(const Term& x) {
  constexpr double most = 20;  // past it the quotient is 1
  const Term e = exp(at_most(x, most)), n = e * (e + 2);
  return x * (n / (n + 2));
}

Term gelu_of(const Term& x, Gelu kind) {
  constexpr double root_half = 0x1.6a09e667f3bcdp-1, root_two_over_pi = 0x1.9884533d43651p-1;
  const Term inner = kind == Gelu::kErf ? erf(x * root_half)
                                        : tanh(root_two_over_pi * (x + 0.044715 * (x * x * x)));
  return 0.5 * x * (1 + inner);
}

}  // namespace

Tensor Tensor::relu() const {
  if (!dtype().is_float()) return maximum(int64_t(0));
  return tensor_of(relu_of(Term(read(*this))), dtype());
}
Tensor Tensor::relu6() const {
  return dtype().is_float() ? hardtanh(0, 6) : clamp(int64_t(0), int64_t(6));
}
Tensor Tensor::leaky_relu(double neg_slope) const {
  return of_real(*this, [&](const Term& x) { return weft::where(0 < x, x, neg_slope * x); });
}
Tensor Tensor::elu(double alpha) const {
  return of_real(*this, [&](const Term& x) { return elu_of(x, alpha); });
}
Tensor Tensor::celu(double alpha) const {
  return of_real(*this, [&](const Term& x) {
    return weft::where(0 < x, x, alpha * weft::expm1(at_most(x, 0) / alpha));
  });
}
Tensor Tensor::selu(double alpha, double gamma) const {
  return of_real(*this, [&](const Term& x) { return gamma * elu_of(x, alpha); });
}
Tensor Tensor::gelu(Gelu kind) const {
  return of_real(*this, [&](const Term& x) { return gelu_of(x, kind); });
}
Tensor Tensor::quick_gelu() const {
  return of_real(*this, [](const Term& x) { return x * weft::sigmoid(1.702 * x); });
}
Tensor Tensor::silu() const {
  return of_real(*this, [](const Term& x) { return x * weft::sigmoid(x); });
}
Tensor Tensor::mish() const { return of_real(*this, mish_of); }
Tensor Tensor::sigmoid() const {
  return of_real(*this, [](const Term& x) { return weft::sigmoid(x); });
}
Tensor Tensor::logsigmoid() const {
  return of_real(*this, [](const Term& x) { return -weft::softplus(-x); });
}
Tensor Tensor::softplus(double beta) const {
  return of_real(*this, [&](const Term& x) { return weft::softplus(beta * x) / beta; });
}
Tensor Tensor::softsign() const {
  return of_real(*this, [](const Term& x) { return x / (1 + apply(Op::MAX, x, -x)); });
}
Tensor Tensor::hardsigmoid(double alpha, double beta) const {
  return of_real(*this, [&](const Term& x) { return between(alpha * x + beta, 0, 1); });
}
Tensor Tensor::hardswish() const {
  return of_real(*this, [](const Term& x) { return x * between(x + 3, 0, 6) / 6; });
}
Tensor Tensor::hardtanh(double min_val, double max_val) const {
  return of_real(*this, [&](const Term& x) { return between(x, min_val, max_val); });
}

// ------------------------------------------------------------------------------------ along an
// axis

namespace {

// exp(x - max), and its sum over the axis. Adding to every x changes nothing: the maximum is a
// constant for the gradient.
struct Exponentials {
  Tensor shifted, powers, sum;
};
Exponentials exponentials(const Tensor& t, int64_t axis) {
  const Tensor x = t.ndim() == 0 ? t.reshape({1}) : t;
  const Axes axes = std::vector<int64_t>{axis};
  const Tensor shifted = x.numel() == 0 ? x : x.sub(x.max(axes, true).detach());
  const Tensor powers = shifted.exp();
  return {shifted, powers, powers.sum(axes, true)};
}

constexpr auto kSoftmax = row("softmax", [](int64_t axis, const Tensor& x) {
  const Exponentials e = exponentials(x, axis);
  return e.powers.div(e.sum).reshape(x.shape());
});
constexpr auto kLogSoftmax = row("log_softmax", [](int64_t axis, const Tensor& x) {
  const Exponentials e = exponentials(x, axis);
  return e.shifted.sub(e.sum.log()).reshape(x.shape());
});

// In `dtype` where one is given; computed in float32 at least, and on a scalar as on one element.
template <const auto& kRow>
Tensor along(std::string_view what, const Tensor& given, int64_t axis, std::optional<DType> dtype) {
  const DType result = dtype.value_or(real_dtype(given.dtype()));
  const Tensor x = given.cast(computing_dtype(result));
  const auto at = int64_t(axis_of(what, axis, std::max<size_t>(x.view().rank(), 1)));
  return call<kRow>({x.dtype(), x.shape()}, at, x).cast(result);
}

}  // namespace

Tensor Tensor::softmax(int64_t axis, std::optional<DType> dtype) const {
  return along<kSoftmax>("softmax", *this, axis, dtype);
}
Tensor Tensor::softmin(int64_t axis, std::optional<DType> dtype) const {
  const Tensor negated = cast(dtype.value_or(real_dtype(this->dtype()))).neg();
  return along<kSoftmax>("softmin", negated, axis, dtype);
}
Tensor Tensor::log_softmax(int64_t axis, std::optional<DType> dtype) const {
  return along<kLogSoftmax>("log_softmax", *this, axis, dtype);
}

Tensor Tensor::layernorm(const Axes& axes, double eps) const {
  const DType result = real_dtype(dtype());
  const Tensor x = cast(computing_dtype(result));
  const Tensor distance = x.sub(x.mean(axes, true));
  const Tensor spread = distance.square().mean(axes, true).add(eps);
  return distance.mul(spread.rsqrt()).cast(result);
}

Tensor Tensor::normalize(double p, int64_t dim, double eps) const {
  const DType result = real_dtype(dtype());
  const Tensor x = cast(computing_dtype(result));
  const Axes axes = std::vector<int64_t>{int64_t(axis_of("normalize", dim, x.shape().size()))};
  Tensor norm = x;
  if (p == 2) {
    norm = x.square().sum(axes, true).sqrt();
  } else if (p == 1) {
    norm = x.abs().sum(axes, true);
  } else if (p == 0) {
    norm = x.ne(0.0).cast(x.dtype()).sum(axes, true);
  } else if (p == HUGE_VAL) {
    norm = x.abs().max(axes, true);
  } else {
    norm = x.abs().pow(p).sum(axes, true).pow(1 / p);
  }
  return x.div(norm.clamp(eps, {})).cast(result);
}

}  // namespace weft
