// Losses of two operands, element by element, and their gradients.
#include <cmath>
#include <cstdint>
#include <optional>

#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/result_type_native.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "base/ref.h"
#include "convert.h"
#include "elementwise.h"
#include "native.h"
#include "operators.h"
#include "structured.h"
#include "tensor/calls.h"
#include "tensor/operand.h"
#include "tensor/term.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using TensorRef = const at::Tensor&;
using Maybe = const std::optional<at::Tensor>&;

bool is_given(Maybe x) { return x && x->defined(); }

// ---- what all share

// The shape that the operands broadcast to, reduced or not, in the dtype that they meet in.
struct LossMeta : at::impl::MetaBase {
  void shape(TensorRef self, TensorRef target, int64_t reduction) {
    TORCH_CHECK(reduction >= 0 && reduction < at::Reduction::END, reduction, " is not a reduction");
    const auto type = at::native::result_type(self, target);
    if (reduction == at::Reduction::None) {
      const auto sizes = at::infer_size_dimvector(self.sizes(), target.sizes());
      set_output_raw_strided(0, sizes, {}, self.options().dtype(type));
    } else {
      set_output_raw_strided(0, {}, {}, self.options().dtype(type));
    }
  }
  void meta(TensorRef self, TensorRef target, int64_t reduction) { shape(self, target, reduction); }
};
struct SmoothMeta : LossMeta {
  void meta(TensorRef self, TensorRef target, int64_t reduction, double beta) {
    TORCH_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
    shape(self, target, reduction);
  }
};
struct HuberMeta : LossMeta {
  void meta(TensorRef self, TensorRef target, int64_t reduction, double delta) {
    TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
    shape(self, target, reduction);
  }
};

weft::Tensor reduced(const weft::Tensor& losses, int64_t reduction) {
  if (reduction == at::Reduction::Mean) return losses.mean();
  return reduction == at::Reduction::Sum ? losses.sum() : losses;
}

// f of the elements, reduced. Sums are of what is computed, not of what is rounded.
template <class Function, class... Operands>
weft::Tensor loss(const Shaped& s, int64_t reduction, at::IntArrayRef sizes, Function&& f,
                  const Operands&... operands) {
  const auto type = computing_type(s.out().scalar_type());
  return reduced(tensor_of(f(term_of(operands, ints(sizes), type)...), dtype_of(type)), reduction);
}
weft::Tensor reduced(const Term& losses, int64_t reduction) {
  return reduced(tensor_of(losses, losses.dtype()), reduction);
}
// Over two operands that broadcast: a call.
template <const auto& kRow, class... Attributes>
weft::Tensor loss_of_two(const Shaped& s, int64_t reduction, TensorRef a, TensorRef b,
                         Attributes... attributes) {
  check_floats(s.out().scalar_type());
  const auto sizes = at::infer_size_dimvector(a.sizes(), b.sizes());
  const auto type = computing_type(s.out().scalar_type());
  const Ints shape = ints(at::IntArrayRef(sizes));
  const Outcome outcome{dtype_of(type), ints(s.out().sizes())};
  const Term result = call<kRow>(outcome, attributes..., reduction, term_of(a, shape, type),
                                 term_of(b, shape, type));
  return tensor_of(result.value());
}

// The share of an element in the loss.
double share(int64_t reduction, int64_t count) {
  return reduction == at::Reduction::Mean ? 1.0 / double(count) : 1.0;
}

// Three operands: the gradient of the loss, and those that it was of.
struct GradientMeta : at::TensorIteratorBase {
  template <class... Rest>
  void meta(TensorRef grad, TensorRef self, TensorRef target, const Rest&...) {
    at::TensorIteratorConfig config;
    config.add_output(maybe_get_output()).add_const_input(self).add_const_input(target);
    config.add_const_input(grad).promote_inputs_to_common_dtype(true);
    config.cast_common_dtype_to_outputs(true).enforce_safe_casting_to_output(true);
    build(config);
  }
};
// By an element, of its share and the slope there.
Term sloped(double factor, const Term& g, const Term& slope) {
  return factor == 1 ? g * slope : g * factor * slope;
}
template <const auto& kRow, class... Attributes>
weft::Tensor gradient(const Shaped& s, int64_t reduction, TensorRef grad, TensorRef self,
                      TensorRef target, Attributes... attributes) {
  const double factor = share(reduction, s.out().numel());
  return call_reals<kRow>(s, attributes..., factor, grad, self, target);
}

// ---- squares and what grows slower

constexpr auto kMseLoss = row("mse_loss", [](int64_t reduction, const Term& x, const Term& y) {
  return reduced((x - y) * (x - y), reduction);
});
constexpr auto kMseLossBackward =
    row("mse_loss_backward", [](double factor, const Term& g, const Term& x, const Term& y) {
      return sloped(factor, g, 2 * (x - y));
    });
weft::Tensor mse(const Shaped& s, TensorRef self, TensorRef target, int64_t reduction) {
  return loss_of_two<kMseLoss>(s, reduction, self, target);
}
weft::Tensor mse_backward(const Shaped& s, TensorRef grad, TensorRef self, TensorRef target,
                          int64_t reduction) {
  return gradient<kMseLossBackward>(s, reduction, grad, self, target);
}

constexpr auto kSmoothL1Loss = row("smooth_l1_loss", [](double beta, int64_t reduction,
                                                        const Term& x, const Term& y) {
  const Term z = magnitude_of(x - y);
  return reduced(beta == 0 ? z : where(z < beta, 0.5 * z * z / beta, z - 0.5 * beta), reduction);
});
constexpr auto kSmoothL1LossBackward =
    row("smooth_l1_loss_backward",
        [](double beta, double factor, const Term& g, const Term& x, const Term& y) {
          const Term d = x - y;
          const Term inside = beta == 0 ? d.like(0.0) : d / beta;
          const Term is_low = (d < -beta) | ((d == -beta) & (d != d.like(0.0)));
          const Term is_high = (beta < d) | ((d == beta) & (d != d.like(0.0)));
          return sloped(factor, g, where(is_low, -1.0, where(is_high, 1.0, inside)));
        });
weft::Tensor smooth_l1(const Shaped& s, TensorRef self, TensorRef target, int64_t reduction,
                       double beta) {
  return loss_of_two<kSmoothL1Loss>(s, reduction, self, target, beta);
}
weft::Tensor smooth_l1_backward(const Shaped& s, TensorRef grad, TensorRef self, TensorRef target,
                                int64_t reduction, double beta) {
  return gradient<kSmoothL1LossBackward>(s, reduction, grad, self, target, beta);
}

constexpr auto kHuberLoss =
    row("huber_loss", [](double delta, int64_t reduction, const Term& x, const Term& y) {
      const Term z = magnitude_of(x - y);
      return reduced(where((z < delta) | (z == delta), 0.5 * z * z, delta * (z - 0.5 * delta)),
                     reduction);
    });
constexpr auto kHuberLossBackward =
    row("huber_loss_backward",
        [](double delta, double factor, const Term& g, const Term& x, const Term& y) {
          return sloped(factor, g, at_most(at_least(x - y, -delta), delta));
        });
weft::Tensor huber(const Shaped& s, TensorRef self, TensorRef target, int64_t reduction,
                   double delta) {
  return loss_of_two<kHuberLoss>(s, reduction, self, target, delta);
}
weft::Tensor huber_backward(const Shaped& s, TensorRef grad, TensorRef self, TensorRef target,
                            int64_t reduction, double delta) {
  return gradient<kHuberLossBackward>(s, reduction, grad, self, target, delta);
}

// log(1 + exp(-y x))
constexpr auto kSoftMarginLoss =
    row("soft_margin_loss", [](int64_t reduction, const Term& x, const Term& y) {
      return reduced(softplus(-(x * y)), reduction);
    });
constexpr auto kSoftMarginLossBackward = row(
    "soft_margin_loss_backward", [](double factor, const Term& g, const Term& x, const Term& y) {
      return sloped(factor, g, -y * sigmoid(-(x * y)));
    });
weft::Tensor soft_margin(const Shaped& s, TensorRef self, TensorRef target, int64_t reduction) {
  return loss_of_two<kSoftMarginLoss>(s, reduction, self, target);
}
weft::Tensor soft_margin_backward(const Shaped& s, TensorRef grad, TensorRef self, TensorRef target,
                                  int64_t reduction) {
  return gradient<kSoftMarginLossBackward>(s, reduction, grad, self, target);
}

// ---- cross entropies of two classes

struct EntropyMeta : LossMeta {
  void meta(TensorRef self, TensorRef target, Maybe, int64_t reduction) {
    TORCH_CHECK(self.sizes() == target.sizes(), "Using a target size (", target.sizes(),
                ") that is different to the input size (", self.sizes(),
                ") is deprecated. Please ensure they have the same size.");
    TORCH_CHECK(self.scalar_type() == target.scalar_type(), "Found dtype ", target.scalar_type(),
                " but expected ", self.scalar_type());
    shape(self, target, reduction);
  }
};
// Logarithms are at least -100.
weft::Tensor cross_entropy(const Shaped& s, TensorRef self, TensorRef target, Maybe weight,
                           int64_t reduction) {
  check_floats(s.out().scalar_type());
  const auto sizes = self.sizes();
  const auto type = computing_type(s.out().scalar_type());
  return loss(
      s, reduction, sizes,
      [&](const Term& x, const Term& y) {
        const Term bounded = at_least(log1p(-x), -100), direct = at_least(log(x), -100);
        const Term result = (y - 1) * bounded - y * direct;
        return is_given(weight) ? result * term_of(*weight, ints(sizes), type) : result;
      },
      self, target);
}
struct EntropyGradientMeta : GradientMeta {
  void meta(TensorRef grad, TensorRef self, TensorRef target, Maybe, int64_t) {
    for (const at::Tensor* other : {&grad, &target}) {
      TORCH_CHECK(other->scalar_type() == self.scalar_type(), "Found dtype ", other->scalar_type(),
                  " but expected ", self.scalar_type());
      const auto sizes = at::infer_size_dimvector(other->sizes(), self.sizes());
      TORCH_CHECK(sizes == self.sizes(), "output with shape ", self.sizes(),
                  " doesn't match the broadcast shape ", sizes);
    }
    GradientMeta::meta(grad, self, target);
  }
};
Term slope_of_entropy(const Term& x, const Term& y) {
  return (x - y) / at_least((1 - x) * x, 1e-12);
}
constexpr auto kEntropyBackward =
    row("binary_cross_entropy_backward",
        [](double factor, const Term& g, const Term& x, const Term& y) {
          return sloped(factor, g, slope_of_entropy(x, y));
        });
weft::Tensor cross_entropy_backward(const Shaped& s, TensorRef grad, TensorRef self,
                                    TensorRef target, Maybe weight, int64_t reduction) {
  if (!is_given(weight)) return gradient<kEntropyBackward>(s, reduction, grad, self, target);
  const double factor = share(reduction, s.out().numel());
  const auto f = [&](const Term& g, const Term& x, const Term& y) {
    const auto w = term_of(*weight, ints(s.out().sizes()), computing_type(*s.common));
    return g * factor * (slope_of_entropy(x, y) * w);
  };
  return compute_reals(s, f, grad, self, target);
}

// (1 - y) x + l (log(1 + exp(-|x|)) + max(-x, 0)), with l = 1 + (p - 1) y for a weight p.
struct LogitsMeta : LossMeta {
  void meta(TensorRef self, TensorRef target, Maybe weight, Maybe positive, int64_t reduction) {
    const auto expanded = at::infer_size_dimvector(self.sizes(), target.sizes());
    TORCH_CHECK(expanded == target.sizes(), "output with shape ", target.sizes(),
                " doesn't match the broadcast shape ", expanded);
    if (reduction != at::Reduction::None) return shape(self, target, reduction);
    auto sizes = at::infer_size_dimvector(self.sizes(), target.sizes());
    if (is_given(weight)) sizes = at::infer_size_dimvector(sizes, weight->sizes());
    if (is_given(positive)) sizes = at::infer_size_dimvector(sizes, positive->sizes());
    set_output_raw_strided(0, sizes, {},
                           self.options().dtype(at::native::result_type(self, target)));
  }
};
weft::Tensor logits(const Shaped& s, TensorRef self, TensorRef target, Maybe weight, Maybe positive,
                    int64_t reduction) {
  auto sizes = at::infer_size_dimvector(self.sizes(), target.sizes());
  if (is_given(weight)) sizes = at::infer_size_dimvector(sizes, weight->sizes());
  if (is_given(positive)) sizes = at::infer_size_dimvector(sizes, positive->sizes());
  const auto type = computing_type(s.out().scalar_type());
  const Ints shape = ints(at::IntArrayRef(sizes));
  return loss(
      s, reduction, sizes,
      [&](const Term& x, const Term& y) {
        Term entropy = softplus(-x);
        if (is_given(positive)) entropy = entropy * (1 + (term_of(*positive, shape, type) - 1) * y);
        const Term result = (1 - y) * x + entropy;
        return is_given(weight) ? result * term_of(*weight, shape, type) : result;
      },
      self, target);
}

// NOLINTBEGIN: PyTorch's macros
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<SmoothMeta, smooth_l1, at::_ops::smooth_l1_loss, at::_ops::smooth_l1_loss_out>(m);
  structured<LossMeta, mse, at::_ops::mse_loss, at::_ops::mse_loss_out>(m);
  structured<HuberMeta, huber, at::_ops::huber_loss, at::_ops::huber_loss_out>(m);
  structured<LossMeta, soft_margin, at::_ops::soft_margin_loss, at::_ops::soft_margin_loss_out>(m);
  structured<EntropyMeta, cross_entropy, at::_ops::binary_cross_entropy,
             at::_ops::binary_cross_entropy_out>(m);
  native<at::_ops::binary_cross_entropy_with_logits,
         FunctionalForm<LogitsMeta, logits, at::_ops::binary_cross_entropy_with_logits>::call>(m);

  structured<GradientMeta, mse_backward, at::_ops::mse_loss_backward,
             at::_ops::mse_loss_backward_grad_input>(m);
  structured<GradientMeta, smooth_l1_backward, at::_ops::smooth_l1_loss_backward,
             at::_ops::smooth_l1_loss_backward_grad_input>(m);
  structured<GradientMeta, huber_backward, at::_ops::huber_loss_backward,
             at::_ops::huber_loss_backward_out>(m);
  structured<GradientMeta, soft_margin_backward, at::_ops::soft_margin_loss_backward,
             at::_ops::soft_margin_loss_backward_grad_input>(m);
  structured<EntropyGradientMeta, cross_entropy_backward, at::_ops::binary_cross_entropy_backward,
             at::_ops::binary_cross_entropy_backward_grad_input>(m);
}
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
