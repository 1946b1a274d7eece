// Normalisation of batches: every channel (axis 1) by its mean and variance. Running statistics are
// written in place, also by operators whose schemas do not say so.
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/native/Resize.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "base/ref.h"
#include "elementwise.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "scaled.h"
#include "storage.h"
#include "tensor/calls.h"
#include "value/value.h"
#include "weft/dtype.h"
#include "weft/small_vector.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using MaybeTensor = std::optional<at::Tensor>;

// All axes but that of channels.
std::vector<int64_t> axes_of_batch(const weft::Tensor& x) {
  std::vector<int64_t> axes{0};
  for (int64_t i = 2; i < x.ndim(); i++) axes.push_back(i);
  return axes;
}

// A vector of one number per channel, beside the input.
weft::Tensor along_channels(const weft::Tensor& x, const weft::Tensor& input) {
  Sizes shape(input.view().rank(), 1);
  shape[1] = input.shape()[1];
  return x.reshape(shape);
}

int64_t elements_per_channel(const at::Tensor& input) {
  return input.size(1) == 0 ? 0 : input.numel() / input.size(1);
}

void check_channels(const at::Tensor& input, const MaybeTensor& x, const char* what) {
  TORCH_CHECK(!is_given(x) || x->dim() == 1, what, " should have 1 axis, not ",
              is_given(x) ? x->dim() : 0);
  TORCH_CHECK(!is_given(x) || x->numel() == input.size(1), what, " should contain ", input.size(1),
              " elements not ", is_given(x) ? x->numel() : 0);
}

c10::ScalarType type_of_statistics(const at::Tensor& input, const MaybeTensor& weight) {
  return is_given(weight) ? c10::promoteTypes(input.scalar_type(), weight->scalar_type())
                          : input.scalar_type();
}

// Of the elements, one per channel.
weft::Tensor mean_of(const weft::Tensor& x) { return x.mean(axes_of_batch(x)); }
weft::Tensor variance_of(const weft::Tensor& x) {
  return x.sub(along_channels(mean_of(x), x)).square().mean(axes_of_batch(x));
}
weft::Tensor inverse_deviation(double eps, const weft::Tensor& variance) {
  return variance.add(eps).rsqrt();
}
// (x - mean) invstd
weft::Tensor centred(const weft::Tensor& x, const weft::Tensor& mean, const weft::Tensor& invstd) {
  return x.sub(along_channels(mean, x)).mul(along_channels(invstd, x));
}

constexpr auto kMean = row<mean_of>("batch_norm_mean");
constexpr auto kVariance = row<variance_of>("batch_norm_variance");
constexpr auto kInverseDeviation = row<inverse_deviation>("inverse_deviation");
constexpr auto kInvstd = row("batch_norm_invstd", [](double eps, const weft::Tensor& x) {
  return inverse_deviation(eps, variance_of(x));
});
constexpr auto kCentred = row<centred>("centred_by_channel");

// Of two vectors of one number per channel.
constexpr auto kProduct =
    row("product_by_channel", [](Ints shape, const weft::Tensor& x, const weft::Tensor& y) {
      return x.reshape(shape).mul(y.reshape(shape));
    });
Ref<Value> product(const Ref<Value>& a, const Ref<Value>& b) {
  return call<kProduct>({wider(a->dtype(), b->dtype()), {a->numel()}}, a, b);
}

Ref<Value> mean_value(const Ref<Value>& x) { return call<kMean>({x->dtype(), {x->shape()[1]}}, x); }

// By what it is and how parameters scale it (scaled.h): computed from the elements themselves,
struct BatchNorm {
  static constexpr std::string_view kName = "batch_norm";
  double eps = 0;

  auto fields() { return std::tie(eps); }
  weft::Tensor of(const weft::Tensor& x) const {
    return centred(x, mean_of(x), inverse_deviation(eps, variance_of(x)));
  }
  static weft::Tensor beside(const weft::Tensor& p, const weft::Tensor& x) {
    return along_channels(p, x);
  }
};
// ... or centred already.
struct ByChannel {
  static constexpr std::string_view kName = "scaled_by_channel";

  static auto fields() { return std::tuple(); }
  static weft::Tensor of(const weft::Tensor& x) { return x; }
  static weft::Tensor beside(const weft::Tensor& p, const weft::Tensor& x) {
    return along_channels(p, x);
  }
};
constexpr auto kNormedByRunning = row(
    "batch_norm_by_running",
    [](double eps, const weft::Tensor& x, const weft::Tensor& mean, const weft::Tensor& variance) {
      return centred(x, mean, inverse_deviation(eps, variance));
    });

// before (1 - momentum) + now momentum
weft::Tensor moved_on(const weft::Tensor& before, const weft::Tensor& now, double momentum) {
  return before.mul(1 - momentum).add(now.cast(before.dtype()).mul(momentum));
}

constexpr auto kNextMean =
    row("running_mean", [](double momentum, const weft::Tensor& before, const weft::Tensor& now) {
      return moved_on(before, now, momentum);
    });
constexpr auto kNextVariance =
    row("running_var", [](double momentum, const weft::Tensor& before, const weft::Tensor& x) {
      const int64_t count = x.numel() / x.shape()[1];
      return moved_on(before, variance_of(x).mul(double(count) / double(count - 1)), momentum);
    });
template <const auto& kNext>
Ref<Value> next(const MaybeTensor& running, double momentum, const Ref<Value>& of) {
  if (!is_given(running)) return {};
  const Ref<Value> before = wide_value(*running);
  return call<kNext>({before->dtype(), before->shape()}, momentum, before, of);
}

// The variance is part of each call that reads it: it is the same in all of them.
void update(const MaybeTensor& running_mean, const MaybeTensor& running_var, const Ref<Value>& mean,
            const Ref<Value>& x, double momentum) {
  // What is wrong with one of them is found before the other is written.
  Ref<Value> next_mean = next<kNextMean>(running_mean, momentum, mean);
  Ref<Value> next_variance = next<kNextVariance>(running_var, momentum, x);
  if (next_mean) put(*running_mean, std::move(next_mean));
  if (next_variance) put(*running_var, std::move(next_variance));
}

Three batch_norm(const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                 const MaybeTensor& running_mean, const MaybeTensor& running_var, bool training,
                 double momentum, double eps) {
  check_floats(input.scalar_type());
  TORCH_CHECK(input.dim() >= 2, "batch_norm: expected an input of at least 2 dimensions, got ",
              input.dim());
  check_channels(input, weight, "weight");
  check_channels(input, bias, "bias");
  check_channels(input, running_mean, "running_mean");
  check_channels(input, running_var, "running_var");
  TORCH_CHECK_VALUE(is_given(running_mean) == is_given(running_var),
                    "running_mean and running_var must either both be None or neither be None");
  const c10::ScalarType type = input.scalar_type(), kept = type_of_statistics(input, weight);
  const c10::MemoryFormat format = input.suggest_memory_format();
  const auto none = [&] { return empty({0}, kept); };
  if (!training) {
    TORCH_CHECK(is_given(running_mean) && is_given(running_var),
                "batch_norm: running_mean and running_var are needed where it does not train");
    if (input.numel() == 0) return {empty(input.sizes(), type), none(), none()};
    const Ref<Value> x = wide_value(input), variance = wide_value(*running_var);
    const Ref<Value> y = call<kNormedByRunning>({wider(x->dtype(), variance->dtype()), x->shape()},
                                                eps, x, wide_value(*running_mean), variance);
    return {give_in(scaled(y, ByChannel(), weight, bias), type, format), none(), none()};
  }
  if (input.numel() == 0) {
    at::Tensor mean = empty({input.size(1)}, kept), invstd = empty({input.size(1)}, kept);
    put(mean, number(std::numeric_limits<double>::quiet_NaN(), kept));
    put(invstd, number(std::numeric_limits<double>::quiet_NaN(), kept));
    return {empty(input.sizes(), type), mean, invstd};
  }
  const Ref<Value> x = wide_value(input);
  Ref<Value> mean = mean_value(x);
  Ref<Value> invstd = call<kInvstd>({x->dtype(), mean->shape()}, eps, x);
  at::Tensor y = give_in(scaled(x, BatchNorm{eps}, weight, bias), type, format);
  update(running_mean, running_var, mean, x, momentum);
  return {std::move(y), give(std::move(mean), kept), give(std::move(invstd), kept)};
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> batch_norm_out(
    const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
    const MaybeTensor& running_mean, const MaybeTensor& running_var, bool training, double momentum,
    double eps, at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd) {
  const Three result =
      batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
  const auto place = [](at::Tensor& to, const at::Tensor& from) {
    at::native::resize_output(to, from.sizes());
    if (from.numel() != 0) put(to, handle(from));
  };
  place(out, std::get<0>(result));
  place(save_mean, std::get<1>(result));
  place(save_invstd, std::get<2>(result));
  return {out, save_mean, save_invstd};
}

Three legit(const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
            at::Tensor& running_mean, at::Tensor& running_var, bool training, double momentum,
            double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}
std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> legit_out(
    const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
    at::Tensor& running_mean, at::Tensor& running_var, bool training, double momentum, double eps,
    at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd) {
  return batch_norm_out(input, weight, bias, running_mean, running_var, training, momentum, eps,
                        out, save_mean, save_invstd);
}
Three legit_no_stats(const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                     bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, {}, {}, training, momentum, eps);
}
std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> legit_no_stats_out(
    const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias, bool training,
    double momentum, double eps, at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd) {
  return batch_norm_out(input, weight, bias, {}, {}, training, momentum, eps, out, save_mean,
                        save_invstd);
}
Three legit_no_training(const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                        const at::Tensor& running_mean, const at::Tensor& running_var,
                        double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps);
}
Four with_update(const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                 at::Tensor& running_mean, at::Tensor& running_var, double momentum, double eps) {
  return std::tuple_cat(
      batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps),
      std::tuple(empty({0}, at::kByte)));
}
Four no_update(const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
               const MaybeTensor& running_mean, const MaybeTensor& running_var, double momentum,
               double eps) {
  return std::tuple_cat(
      batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps),
      std::tuple(empty({0}, at::kByte)));
}

std::tuple<at::Tensor, at::Tensor> update_stats(const at::Tensor& input,
                                                const MaybeTensor& running_mean,
                                                const MaybeTensor& running_var, double momentum) {
  check_floats(input.scalar_type());
  check_channels(input, running_mean, "running_mean");
  check_channels(input, running_var, "running_var");
  const Ref<Value> x = wide_value(input);
  Ref<Value> mean = mean_value(x);
  Ref<Value> variance = call<kVariance>({x->dtype(), mean->shape()}, x);
  update(running_mean, running_var, mean, x, momentum);
  return {give(std::move(mean), input.scalar_type()),
          give(std::move(variance), input.scalar_type())};
}

// Sums of the gradient are over `1 / share` elements; there are none where it does not train.
constexpr auto kByInput =
    row("batch_norm_by_input", [](bool train, double share, const weft::Tensor& by,
                                  const weft::Tensor& xhat, const weft::Tensor& scale) {
      weft::Tensor dx = by;
      if (train) {
        const auto axes = axes_of_batch(by);
        const weft::Tensor level = by.sum(axes, true), slope = by.mul(xhat).sum(axes, true);
        dx = by.sub(level.mul(share)).sub(xhat.mul(slope.mul(share)));
      }
      return dx.mul(along_channels(scale, by));
    });
constexpr auto kByWeight =
    row("batch_norm_by_weight", [](const weft::Tensor& by, const weft::Tensor& xhat) {
      return by.mul(xhat).sum(axes_of_batch(by));
    });
constexpr auto kByBias =
    row("batch_norm_by_bias", [](const weft::Tensor& by) { return by.sum(axes_of_batch(by)); });

Three batch_norm_backward(const at::Tensor& gradient, const at::Tensor& input,
                          const MaybeTensor& weight, const MaybeTensor& running_mean,
                          const MaybeTensor& running_var, const MaybeTensor& save_mean,
                          const MaybeTensor& save_invstd, bool train, double eps,
                          std::array<bool, 3> wanted) {
  check_floats(input.scalar_type());
  check_sizes("the gradient", gradient, input.sizes());
  check_channels(input, weight, "weight");
  const MaybeTensor &mean_given = train ? save_mean : running_mean,
                    &deviation_given = train ? save_invstd : running_var;
  TORCH_CHECK(is_given(mean_given) && is_given(deviation_given),
              "Expected the mean and the deviation of the forward to be given");
  check_channels(input, mean_given, "the mean");
  check_channels(input, deviation_given, "the deviation");
  Three result;
  const c10::ScalarType type = input.scalar_type();
  const c10::ScalarType parameter = is_given(weight) ? weight->scalar_type() : type;
  if (input.numel() == 0) {
    const auto zeros = [&] {
      at::Tensor z = empty({input.size(1)}, parameter);
      put(z, number(0, parameter));
      return z;
    };
    if (wanted[0]) std::get<0>(result) = empty(input.sizes(), type);
    if (wanted[1]) std::get<1>(result) = zeros();
    if (wanted[2]) std::get<2>(result) = zeros();
    return result;
  }
  const Ref<Value> mean = wide_value(*mean_given);
  Ref<Value> invstd = wide_value(*deviation_given);
  if (!train) invstd = call<kInverseDeviation>({invstd->dtype(), invstd->shape()}, eps, invstd);
  const Ref<Value> g = wide_value(gradient), x = wide_value(input);
  const Ref<Value> xhat =
      call<kCentred>({wider(x->dtype(), invstd->dtype()), x->shape()}, x, mean, invstd);
  const DType dtype = wider(g->dtype(), xhat->dtype());
  if (wanted[0]) {
    const double share = 1.0 / double(elements_per_channel(input));
    const Ref<Value> scale = is_given(weight) ? product(invstd, wide_value(*weight)) : invstd;
    std::get<0>(result) = give_in(
        call<kByInput>({wider(dtype, scale->dtype()), g->shape()}, train, share, g, xhat, scale),
        type, input.suggest_memory_format());
  }
  const int64_t channels = input.size(1);
  if (wanted[1]) {
    std::get<1>(result) = give(call<kByWeight>({dtype, {channels}}, g, xhat), parameter);
  }
  if (wanted[2]) {
    std::get<2>(result) = give(call<kByBias>({g->dtype(), {channels}}, g), parameter);
  }
  return result;
}
Three backward_of_update(const at::Tensor& gradient, const at::Tensor& input,
                         const at::Tensor& weight, const MaybeTensor& running_mean,
                         const MaybeTensor& running_var, const MaybeTensor& save_mean,
                         const MaybeTensor& save_var, bool update, double eps,
                         std::array<bool, 3> wanted, const at::Tensor&) {
  return batch_norm_backward(gradient, input, weight, running_mean, running_var, save_mean,
                             save_var, update, eps, wanted);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::native_batch_norm, batch_norm>(m);
  native<at::_ops::native_batch_norm_out, batch_norm_out>(m);
  native<at::_ops::native_batch_norm_backward, batch_norm_backward>(m);
  native<at::_ops::_native_batch_norm_legit, legit>(m);
  native<at::_ops::_native_batch_norm_legit_out, legit_out>(m);
  native<at::_ops::_native_batch_norm_legit_no_stats, legit_no_stats>(m);
  native<at::_ops::_native_batch_norm_legit_no_stats_out, legit_no_stats_out>(m);
  native<at::_ops::_native_batch_norm_legit_no_training, legit_no_training>(m);
  native<at::_ops::_batch_norm_with_update, with_update>(m);
  native<at::_ops::_batch_norm_no_update, no_update>(m);
  native<at::_ops::batch_norm_update_stats, update_stats>(m);
  native<at::_ops::batch_norm_backward, backward_of_update>(m);
}

}  // namespace
}  // namespace weft::pytorch
