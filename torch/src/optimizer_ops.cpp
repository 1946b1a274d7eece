// Steps of optimisers, whole: of every parameter, its gradient and its state.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <tuple>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "elementwise.h"
#include "formulas.h"
#include "ir/op.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "tensor/calls.h"
#include "tensor/term.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using Maybe = const std::optional<at::Tensor>&;

// What is wrong with gradients and state is found before anything is written: they have their
// parameter's shape and device.
void check_step(at::TensorList parameters, std::initializer_list<at::TensorList> lists) {
  for (const at::TensorList list : lists) {
    TORCH_CHECK(list.size() == parameters.size(), "a step of ", parameters.size(),
                " parameters is given a list of ", list.size(), " tensors");
    for (size_t i = 0; i < list.size(); i++) {
      check_sizes("a tensor of a step", list[i], parameters[i].sizes());
      TORCH_CHECK(list[i].device() == parameters[i].device(),
                  "Expected all tensors to be on the same device, but found at least two devices, ",
                  parameters[i].device(), " and ", list[i].device(), "!");
    }
  }
}
// How many steps there were, of each parameter: one number, which may be the CPU's.
void check_counts(at::TensorList parameters, at::TensorList counts) {
  TORCH_CHECK(counts.size() == parameters.size(), "a step of ", parameters.size(),
              " parameters is given ", counts.size(), " counts of steps");
  for (size_t i = 0; i < counts.size(); i++) {
    const bool is_here = counts[i].device() == parameters[i].device() || counts[i].dim() == 0;
    TORCH_CHECK(counts[i].numel() == 1 && is_here, "a count of steps of shape ", counts[i].sizes(),
                " on ", counts[i].device(), " for a parameter on ", parameters[i].device());
  }
}

// Numbers that a step is told, the rate as a number or as a tensor of one.
struct Rate {
  double number = 0;
  const at::Tensor* tensor = nullptr;

  Term in(const Term& like, c10::ScalarType type) const {
    return tensor != nullptr ? term_of(*tensor, {}, type) : like.like(number);
  }
};

// One parameter in a step: terms that are read now, and writes that the scaler may call off.
class Step {
 public:
  Step(const at::Tensor& parameter, Maybe scale, Maybe found_inf)
      : shape_(ints(parameter.sizes())),
        type_(computing_type(parameter.scalar_type())),
        scale_(scale && scale->defined() ? &*scale : nullptr),
        found_(found_inf && found_inf->defined() ? &*found_inf : nullptr) {}

  c10::ScalarType type() const { return type_; }
  Term read(const at::Tensor& tensor) const { return term_of(tensor, shape_, type_); }
  // A number of the state, as a scalar.
  Term scalar(const at::Tensor& tensor) const { return term_of(tensor, {}, type_); }

  // The gradient without the scale of the loss, which is kept so.
  Term gradient(const at::Tensor& grad, bool maximize) const {
    Term g = read(grad);
    if (scale_ != nullptr) {
      g = g / scalar(*scale_);
      write(grad, g);
    }
    return maximize ? -g : g;
  }
  void write(const at::Tensor& tensor, const Term& value) const {
    const Term kept = found_ == nullptr ? value : where(scalar(*found_) == 1, read(tensor), value);
    put(tensor, tensor_of(kept, held(tensor.scalar_type()).dtype));
  }

 private:
  Ints shape_;
  c10::ScalarType type_;
  const at::Tensor* scale_;
  const at::Tensor* found_;
};

// ---- Adam

enum class Decay : uint8_t { kOfGradient, kOfParameter };

struct AdamNumbers {
  double beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize;

  auto fields() { return std::tie(beta1, beta2, weight_decay, eps, amsgrad, maximize); }
};

Term power(double base, const Term& exponent) {
  return apply(Op::EXP2, exponent * std::log2(base));
}

// The new mean over the root of the new squares, both corrected for how many steps there were.
Term adam_direction(const AdamNumbers& n, const Term& mean, const Term& square, const Term& steps) {
  const Term denominator = sqrt(square) / sqrt(1 - power(n.beta2, steps)) + n.eps;
  return mean / (1 - power(n.beta1, steps)) / denominator;
}

constexpr int64_t kValuesOfStep = 8;
constexpr auto kAdamMean =
    row("adam_mean", kValuesOfStep, [](const AdamNumbers& n, const Term& m, const Term& by) {
      return m + (by - m) * (1 - n.beta1);
    });
constexpr auto kAdamSquare =
    row("adam_square", kValuesOfStep, [](const AdamNumbers& n, const Term& v, const Term& by) {
      return v * n.beta2 + by * by * (1 - n.beta2);
    });
constexpr auto kAdamDirection = row("adam_direction", kValuesOfStep,
                                    [](const AdamNumbers& n, const Term& m, const Term& v,
                                       const Term& t) { return adam_direction(n, m, v, t); });
constexpr auto kAdamStep = row("adam_step", kValuesOfStep,
                               [](double decay, const Term& x, const Term& by, const Term& rate) {
                                 return (decay != 0 ? x * (1 - rate * decay) : x) - rate * by;
                               });

template <Decay decay>
void adam_one(const Step& step, const Rate& rate, const AdamNumbers& n, const at::Tensor& parameter,
              const at::Tensor& grad, const at::Tensor& mean, const at::Tensor& square,
              const at::Tensor* largest, const at::Tensor& count) {
  const Term p = step.read(parameter), steps = step.scalar(count);
  Term g = step.gradient(grad, n.maximize);
  if (n.weight_decay != 0 && decay == Decay::kOfGradient) g = g + p * n.weight_decay;
  const Term new_mean = call_like<kAdamMean>(n, step.read(mean), g);
  const Term new_square = call_like<kAdamSquare>(n, step.read(square), g);
  const Term most =
      largest != nullptr ? apply(Op::MAX, step.read(*largest), new_square) : new_square;
  const Term direction = call_like<kAdamDirection>(n, new_mean, most, steps);
  const double shrinks = decay == Decay::kOfParameter ? n.weight_decay : 0;
  step.write(parameter, call_like<kAdamStep>(shrinks, p, direction, rate.in(p, step.type())));
  step.write(mean, new_mean);
  step.write(square, new_square);
  if (largest != nullptr) step.write(*largest, most);
}

template <Decay decay>
void adam_all(at::TensorList parameters, at::TensorList grads, at::TensorList means,
              at::TensorList squares, at::TensorList largest, at::TensorList counts,
              const Rate& rate, const AdamNumbers& numbers, Maybe scale, Maybe found_inf) {
  check_step(parameters, {grads, means, squares});
  if (numbers.amsgrad) check_step(parameters, {largest});
  check_counts(parameters, counts);
  for (size_t i = 0; i < parameters.size(); i++) {
    if (parameters[i].numel() == 0) continue;
    adam_one<decay>(Step(parameters[i], scale, found_inf), rate, numbers, parameters[i], grads[i],
                    means[i], squares[i], numbers.amsgrad ? &largest[i] : nullptr, counts[i]);
  }
}

template <Decay decay>
void adam(at::TensorList parameters, at::TensorList grads, at::TensorList means,
          at::TensorList squares, at::TensorList largest, at::TensorList counts, double lr,
          double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
          Maybe scale, Maybe found_inf) {
  adam_all<decay>(parameters, grads, means, squares, largest, counts, {.number = lr},
                  {beta1, beta2, weight_decay, eps, amsgrad, maximize}, scale, found_inf);
}
template <Decay decay>
void adam_by_tensor(at::TensorList parameters, at::TensorList grads, at::TensorList means,
                    at::TensorList squares, at::TensorList largest, at::TensorList counts,
                    const at::Tensor& lr, double beta1, double beta2, double weight_decay,
                    double eps, bool amsgrad, bool maximize, Maybe scale, Maybe found_inf) {
  adam_all<decay>(parameters, grads, means, squares, largest, counts, {.tensor = &lr},
                  {beta1, beta2, weight_decay, eps, amsgrad, maximize}, scale, found_inf);
}

// ---- descent with momentum

struct SgdNumbers {
  double weight_decay, momentum, dampening;
  bool nesterov, maximize, is_first;
};

void sgd_all(at::TensorList parameters, at::TensorList grads, at::TensorList momenta,
             const Rate& rate, const SgdNumbers& n, Maybe scale, Maybe found_inf) {
  check_step(parameters, {grads});
  if (n.momentum != 0) check_step(parameters, {momenta});
  for (size_t i = 0; i < parameters.size(); i++) {
    if (parameters[i].numel() == 0) continue;
    const Step step(parameters[i], scale, found_inf);
    const Term p = step.read(parameters[i]);
    Term g = step.gradient(grads[i], n.maximize);
    if (n.weight_decay != 0) g = g + p * n.weight_decay;
    if (n.momentum != 0) {
      const Term moved =
          n.is_first ? g : step.read(momenta[i]) * n.momentum + g * (1 - n.dampening);
      step.write(momenta[i], moved);
      g = n.nesterov ? g + moved * n.momentum : moved;
    }
    step.write(parameters[i], p - rate.in(p, step.type()) * g);
  }
}
void sgd(at::TensorList parameters, at::TensorList grads, at::TensorList momenta,
         double weight_decay, double momentum, double lr, double dampening, bool nesterov,
         bool maximize, bool is_first, Maybe scale, Maybe found_inf) {
  sgd_all(parameters, grads, momenta, {.number = lr},
          {weight_decay, momentum, dampening, nesterov, maximize, is_first}, scale, found_inf);
}
void sgd_by_tensor(at::TensorList parameters, at::TensorList grads, at::TensorList momenta,
                   double weight_decay, double momentum, const at::Tensor& lr, double dampening,
                   bool nesterov, bool maximize, bool is_first, Maybe scale, Maybe found_inf) {
  sgd_all(parameters, grads, momenta, {.tensor = &lr},
          {weight_decay, momentum, dampening, nesterov, maximize, is_first}, scale, found_inf);
}

// ---- Adagrad

struct AdagradNumbers {
  double lr_decay, weight_decay, eps;
  bool maximize;
};

void adagrad_all(at::TensorList parameters, at::TensorList grads, at::TensorList sums,
                 at::TensorList counts, const Rate& rate, const AdagradNumbers& n, Maybe scale,
                 Maybe found_inf) {
  check_step(parameters, {grads, sums});
  check_counts(parameters, counts);
  for (size_t i = 0; i < parameters.size(); i++) {
    if (parameters[i].numel() == 0) continue;
    const Step step(parameters[i], scale, found_inf);
    const Term p = step.read(parameters[i]);
    Term g = step.gradient(grads[i], n.maximize);
    if (n.weight_decay != 0) g = g + p * n.weight_decay;
    const Term lr = rate.in(p, step.type());
    const Term size = lr / (1 + (step.scalar(counts[i]) - 1) * n.lr_decay);
    const Term sum = step.read(sums[i]) + g * g;
    step.write(parameters[i], p - size * g / (sqrt(sum) + n.eps));
    step.write(sums[i], sum);
  }
}
void adagrad(at::TensorList parameters, at::TensorList grads, at::TensorList sums,
             at::TensorList counts, double lr, double lr_decay, double weight_decay, double eps,
             bool maximize, Maybe scale, Maybe found_inf) {
  adagrad_all(parameters, grads, sums, counts, {.number = lr},
              {lr_decay, weight_decay, eps, maximize}, scale, found_inf);
}
void adagrad_by_tensor(at::TensorList parameters, at::TensorList grads, at::TensorList sums,
                       at::TensorList counts, const at::Tensor& lr, double lr_decay,
                       double weight_decay, double eps, bool maximize, Maybe scale,
                       Maybe found_inf) {
  adagrad_all(parameters, grads, sums, counts, {.tensor = &lr},
              {lr_decay, weight_decay, eps, maximize}, scale, found_inf);
}

// ---- the scale of a loss

void check_single(const char* what, const at::Tensor& x, c10::ScalarType type = at::kFloat) {
  TORCH_CHECK(x.numel() == 1, what, " must be a 1-element tensor.");
  TORCH_CHECK(x.scalar_type() == type, what, " must be a tensor of ", type);
}

void unscale(at::TensorList tensors, at::Tensor& found_inf, const at::Tensor& inverse) {
  check_single("found_inf", found_inf);
  check_single("inv_scale", inverse);
  weft::Tensor found = operand(found_inf);
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() == 0) continue;
    const weft::Tensor x = operand(tensor, computing_type(tensor.scalar_type()));
    found = weft::Tensor::where(x.isfinite().all(), found, 1.0);
    put(tensor, x.mul(operand(inverse)));
  }
  put(found_inf, found);
}

// Smaller after a step that was called off, larger after so many that were not.
at::Tensor& update_scale(at::Tensor& scale, at::Tensor& tracker, const at::Tensor& found_inf,
                         double growth, double backoff, int64_t interval) {
  check_single("growth_tracker", tracker, at::kInt);
  check_single("current_scale", scale);
  check_single("found_inf", found_inf);
  const weft::Tensor s = operand(scale), is_found = operand(found_inf).ne(0.0);
  const weft::Tensor successes = operand(tracker).add(int64_t(1));
  const weft::Tensor grows = successes.eq(interval), grown = s.mul(growth);
  const weft::Tensor larger = weft::Tensor::where(grows.bitwise_and(grown.isfinite()), grown, s);
  put(scale, weft::Tensor::where(is_found, s.mul(backoff), larger));
  put(tracker, weft::Tensor::where(is_found.bitwise_or(grows), int64_t(0), successes));
  return scale;
}

// NOLINTBEGIN: PyTorch's macros
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  native<at::_ops::_amp_foreach_non_finite_check_and_unscale_, unscale>(m);
  native<at::_ops::_amp_update_scale_, update_scale>(m);
  native<at::_ops::_fused_adam_, adam<Decay::kOfGradient>>(m);
  native<at::_ops::_fused_adam__tensor_lr, adam_by_tensor<Decay::kOfGradient>>(m);
  native<at::_ops::_fused_adamw_, adam<Decay::kOfParameter>>(m);
  native<at::_ops::_fused_adamw__tensor_lr, adam_by_tensor<Decay::kOfParameter>>(m);
  native<at::_ops::_fused_sgd_, sgd>(m);
  native<at::_ops::_fused_sgd__tensor_lr, sgd_by_tensor>(m);
  native<at::_ops::_fused_adagrad_, adagrad>(m);
  native<at::_ops::_fused_adagrad__tensor_lr, adagrad_by_tensor>(m);
}
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
