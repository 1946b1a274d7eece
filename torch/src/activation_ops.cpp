// Activations.
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include <ATen/ops/elu_meta.h>
#include <ATen/ops/gelu_meta.h>
#include <ATen/ops/glu_meta.h>
#include <ATen/ops/hardshrink_meta.h>
#include <ATen/ops/hardsigmoid_meta.h>
#include <ATen/ops/leaky_relu_meta.h>
#include <ATen/ops/mish_meta.h>
#include <ATen/ops/silu_meta.h>
#include <ATen/ops/softplus_meta.h>
#include <ATen/ops/softshrink_meta.h>
#include <ATen/ops/threshold_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "elementwise.h"
#include "generator.h"
#include "halves.h"
#include "native.h"
#include "one_type.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/term.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

// NaN stays.
Term relu(const Term& x) {
  const Term zero = x.like(int64_t(0));
  return where(x < zero, zero, x);
}
Term silu(const Term& x) { return x * sigmoid(x); }
Term hardsigmoid(const Term& x) { return at_most(at_least(x + 3, 0), 6) / 6; }
Term hardswish(const Term& x) { return x * at_most(at_least(x + 3, 0), 6) / 6; }

weft::Tensor hardtanh(const Shaped& s, const at::Tensor& a, const at::Scalar& least,
                      const at::Scalar& most) {
  const auto f = [&](const Term& x) {
    const Term low = x.like(number_of(s, least)), high = x.like(number_of(s, most));
    const Term up = where(x < low, low, x);
    return where(high < up, high, up);
  };
  return compute(s, f, a);
}
struct HardtanhMeta : UnaryMeta {
  void meta(const at::Tensor& self, const at::Scalar& least, const at::Scalar& most) {
    TORCH_CHECK(self.scalar_type() != at::kBool, "Bool inputs not supported for hardtanh");
    TORCH_CHECK(least.toDouble() <= most.toDouble(),
                "cannot do hardtanh with min_val greater than max_val");
    UnaryMeta::meta(self);
  }
};

weft::Tensor threshold(const Shaped& s, const at::Tensor& a, const at::Scalar& most,
                       const at::Scalar& value) {
  const auto f = [&](const Term& x) {
    const Term bound = x.like(number_of(s, most));
    return where((x < bound) | (x == bound), x.like(number_of(s, value)), x);
  };
  return compute(s, f, a);
}
weft::Tensor leaky_relu(const Shaped& s, const at::Tensor& a, const at::Scalar& slope) {
  const auto f = [&](const Term& x) { return where(0 < x, x, x * real_of(s, slope)); };
  return compute_floats(s, f, a);
}
weft::Tensor elu(const Shaped& s, const at::Tensor& a, const at::Scalar& alpha,
                 const at::Scalar& scale, const at::Scalar& input_scale) {
  const double negative = real_of(s, alpha) * real_of(s, scale);
  const auto f = [&](const Term& x) {
    return where(x < 0, expm1(at_most(x, 0) * real_of(s, input_scale)) * negative,
                 x * real_of(s, scale));
  };
  return compute_floats(s, f, a);
}
weft::Tensor gelu(const Shaped& s, const at::Tensor& a, c10::string_view kind) {
  TORCH_CHECK(kind == "none" || kind == "tanh",
              "approximate argument must be either none or tanh.");
  constexpr double root_half = 0x1.6a09e667f3bcdp-1, root_two_over_pi = 0x1.9884533d43651p-1;
  const auto f = [&](const Term& x) {
    const Term inner =
        kind == "tanh" ? tanh(root_two_over_pi * (x + 0.044715 * (x * x * x))) : erf(x * root_half);
    return 0.5 * x * (1 + inner);
  };
  return compute_floats(s, f, a);
}
weft::Tensor mish(const Shaped& s, const at::Tensor& a) {
  check_floats(*s.common);
  return s.in(a).mish();
}
weft::Tensor softplus(const Shaped& s, const at::Tensor& a, const at::Scalar& beta,
                      const at::Scalar& most) {
  const auto f = [&](const Term& x) {
    const Term scaled = x * real_of(s, beta);
    return where(real_of(s, most) < scaled, x, weft::softplus(scaled) / real_of(s, beta));
  };
  return compute_floats(s, f, a);
}
weft::Tensor softshrink(const Shaped& s, const at::Tensor& a, const at::Scalar& lambda) {
  const double width = real_of(s, lambda);
  const auto f = [&](const Term& x) {
    return where(width < x, x - width, where(x < -width, x + width, x * 0.0));
  };
  return compute_floats(s, f, a);
}
weft::Tensor hardshrink(const Shaped& s, const at::Tensor& a, const at::Scalar& lambda) {
  const double width = real_of(s, lambda);
  const auto f = [&](const Term& x) {
    const Term is_above = (-width < x) | (x == -width), is_below = (x < width) | (x == width);
    return where(is_above & is_below, 0.0, x);
  };
  return compute_floats(s, f, a);
}

// The second output, which the backward of the CPU would read, is left empty.
std::tuple<at::Tensor, at::Tensor> log_sigmoid(const at::Tensor& self) {
  check_floats(self.scalar_type());
  at::Tensor result = empty(self.sizes(), self.scalar_type());
  if (self.numel() != 0) put(result, operand(self).logsigmoid());
  return {std::move(result), empty({0}, self.scalar_type())};
}
std::tuple<at::Tensor&, at::Tensor&> log_sigmoid_out(const at::Tensor& self, at::Tensor& out,
                                                     at::Tensor& buffer) {
  check_floats(self.scalar_type());
  check_one_type(self, out);
  at::native::resize_output(out, self.sizes());
  if (self.numel() != 0) put(out, operand(self).logsigmoid());
  return {out, buffer};
}

weft::Tensor glu(const Shaped&, const at::Tensor& self, int64_t dim) {
  check_floats(self.scalar_type());
  const auto [a, b] = halves_of(operand(self, computing_type(self.scalar_type())), dim);
  return a.mul(b.sigmoid());
}

Term prelu(const Term& x, const Term& weight) { return where(x.like(0.0) < x, x, weight * x); }

using Generator = std::optional<at::Generator>;

// In training the slope of each negative element is drawn, and kept as `noise`.
weft::Tensor rrelu_of(const at::Tensor& self, const at::Tensor& noise, double lower, double upper,
                      bool training, const Generator& generator) {
  const weft::Tensor x = operand(self, computing_type(self.scalar_type()));
  if (!training) {
    return weft::Tensor::where(x.gt(0.0), x, x.mul((lower + upper) / 2));
  }
  const weft::Tensor bits = draw_blocks(generator, x.shape()).rshift(int64_t(40));
  const weft::Tensor drawn = bits.cast(x.dtype()).mul((upper - lower) * 0x1p-24).add(lower);
  const weft::Tensor slope = weft::Tensor::where(x.le(0.0), drawn, 1.0);
  put(noise, slope);
  return x.mul(slope);
}
void check_rrelu(const at::Tensor& self, const at::Tensor& noise, double lower, double upper,
                 bool training) {
  check_floats(self.scalar_type());
  TORCH_CHECK(noise.sizes() == self.sizes(),
              "noise tensor shape must match self tensor shape. Got self.shape = ", self.sizes(),
              ", noise.shape = ", noise.sizes());
  if (!training) return;
  check_one_type(self, noise);
  if (self.numel() == 0) return;
  TORCH_CHECK(lower <= upper && std::isfinite(upper - lower),
              "rrelu: slopes are drawn between finite bounds, not from ", lower, " to ", upper);
}
at::Tensor rrelu(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower,
                 const at::Scalar& upper, bool training, Generator generator) {
  check_rrelu(self, noise, real_of(lower), real_of(upper), training);
  at::Tensor result = empty(self.sizes(), self.scalar_type());
  if (self.numel() == 0) return result;
  put(result, rrelu_of(self, noise, real_of(lower), real_of(upper), training, generator));
  return result;
}
at::Tensor& rrelu_(at::Tensor& self, at::Tensor& noise, const at::Scalar& lower,
                   const at::Scalar& upper, bool training, Generator generator) {
  check_rrelu(self, noise, real_of(lower), real_of(upper), training);
  if (self.numel() == 0) return self;
  put(self, rrelu_of(self, noise, real_of(lower), real_of(upper), training, generator));
  return self;
}
at::Tensor& rrelu_out(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower,
                      const at::Scalar& upper, bool training, Generator generator,
                      at::Tensor& out) {
  check_rrelu(self, noise, real_of(lower), real_of(upper), training);
  at::native::resize_output(out, self.sizes());
  if (self.numel() == 0) return out;
  put(out, rrelu_of(self, noise, real_of(lower), real_of(upper), training, generator));
  return out;
}

struct ReluMeta : UnaryMeta {
  void meta(const at::Tensor& self) {
    TORCH_CHECK(self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
    UnaryMeta::meta(self);
  }
};

// NOLINTBEGIN: PyTorch's macros
#define WEFT_ACTIVATION(name, formula)                                                \
  structured<at::meta::structured_##name, formula, at::_ops::name, at::_ops::name##_, \
             at::_ops::name##_out>(m)
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  native<at::_ops::relu, FunctionalForm<ReluMeta, kPlain<relu>, at::_ops::relu>::call>(m);
  native<at::_ops::relu_, InPlaceForm<ReluMeta, kPlain<relu>, at::_ops::relu_>::call>(m);
  WEFT_ACTIVATION(silu, kFloat<silu>);
  WEFT_ACTIVATION(mish, mish);
  WEFT_ACTIVATION(gelu, gelu);
  WEFT_ACTIVATION(elu, elu);
  WEFT_ACTIVATION(leaky_relu, leaky_relu);
  structured<at::meta::structured_threshold, threshold, at::_ops::threshold, at::_ops::threshold_,
             at::_ops::threshold_out>(m);
  WEFT_ACTIVATION(hardsigmoid, kFloat<hardsigmoid>);
  structured<UnaryMeta, kFloat<hardswish>, at::_ops::hardswish, at::_ops::hardswish_,
             at::_ops::hardswish_out>(m);
  structured<HardtanhMeta, hardtanh, at::_ops::hardtanh, at::_ops::hardtanh_,
             at::_ops::hardtanh_out>(m);
  structured<at::meta::structured_softplus, softplus, at::_ops::softplus, at::_ops::softplus_out>(
      m);
  structured<at::meta::structured_softshrink, softshrink, at::_ops::softshrink,
             at::_ops::softshrink_out>(m);
  structured<at::meta::structured_hardshrink, hardshrink, at::_ops::hardshrink,
             at::_ops::hardshrink_out>(m);
  structured<at::meta::structured_glu, glu, at::_ops::glu, at::_ops::glu_out>(m);
  native<at::_ops::log_sigmoid_forward, log_sigmoid>(m);
  native<at::_ops::log_sigmoid_forward_output, log_sigmoid_out>(m);
  native<at::_ops::_prelu_kernel,
         FunctionalForm<SameTypesMeta, kFloat<prelu>, at::_ops::_prelu_kernel>::call>(m);
  native<at::_ops::rrelu_with_noise, rrelu>(m);
  native<at::_ops::rrelu_with_noise_, rrelu_>(m);
  native<at::_ops::rrelu_with_noise_out, rrelu_out>(m);
}
#undef WEFT_ACTIVATION
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
