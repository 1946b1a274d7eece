// Layer, group and root-mean-square normalisation.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/native/layer_norm.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "tensor/deferred_tensor.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using MaybeTensor = std::optional<at::Tensor>;

// The dtype of statistics: that of the input, and of parameters that are wider.
c10::ScalarType type_of_statistics(const at::Tensor& input, const MaybeTensor& weight) {
  return is_given(weight) ? c10::promoteTypes(input.scalar_type(), weight->scalar_type())
                          : input.scalar_type();
}

// Zeros of the shape of a parameter where there are no elements to add up.
at::Tensor zeros_of(const at::Tensor& like) {
  at::Tensor zeros = empty(like.sizes(), like.scalar_type());
  put(zeros, number(0, like.scalar_type()));
  return zeros;
}

// x less its mean along the axes, and 1 / sqrt(variance + eps) of them.
struct Moments {
  weft::Tensor mean, rstd;
};
// Axes [first, past) alone.
Moments moments(const weft::Tensor& x, int64_t first, int64_t past, double eps) {
  Sizes shape(x.shape());
  std::fill(shape.begin() + first, shape.begin() + past, 1);
  const auto mean_of = [first, past](const weft::Tensor& t) {
    return t.mean(axes_from(first, past), true);
  };
  const auto rstd_of = [first, past, eps](const weft::Tensor& t, const weft::Tensor& mean) {
    return t.sub(mean).square().mean(axes_from(first, past), true).add(eps).rsqrt();
  };
  const weft::Tensor mean = deferred_tensor(x.dtype(), shape, mean_of, x);
  return {mean, deferred_tensor(x.dtype(), shape, rstd_of, x, mean)};
}

// Statistics and parameters may be wider than what they are of.
DType wider(DType a, DType b) { return a.bits() < b.bits() ? b : a; }

// (x - mean) rstd
weft::Tensor normalized(const weft::Tensor& x, const weft::Tensor& mean, const weft::Tensor& rstd) {
  const auto formula = [](const weft::Tensor& t, const weft::Tensor& m, const weft::Tensor& r) {
    return t.sub(m).mul(r);
  };
  return deferred_tensor(wider(x.dtype(), rstd.dtype()), x.shape(), formula, x, mean, rstd);
}

// x weight + bias, where they are given; they broadcast to x.
weft::Tensor scaled(const weft::Tensor& x, const std::optional<weft::Tensor>& weight,
                    const std::optional<weft::Tensor>& bias) {
  if (!weight) return bias ? x.add(*bias) : x;
  if (!bias) return x.mul(*weight);
  const auto formula = [](const weft::Tensor& t, const weft::Tensor& w, const weft::Tensor& b) {
    return t.mul(w).add(b);
  };
  return deferred_tensor(wider(x.dtype(), weight->dtype()), x.shape(), formula, x, *weight, *bias);
}

// The gradient by x of xhat = (x - mean) rstd, of that by xhat.
weft::Tensor through_moments(const weft::Tensor& g, const weft::Tensor& xhat,
                             const weft::Tensor& rstd, int64_t first, int64_t past) {
  const auto formula = [first, past](const weft::Tensor& by, const weft::Tensor& x,
                                     const weft::Tensor& r) {
    const auto axes = axes_from(first, past);
    const weft::Tensor level = by.mean(axes, true), slope = by.mul(x).mean(axes, true);
    return by.sub(level).sub(x.mul(slope)).mul(r);
  };
  return deferred_tensor(wider(g.dtype(), xhat.dtype()), g.shape(), formula, g, xhat, rstd);
}

// The sum over axes [0, past) of a product.
weft::Tensor summed_product(const weft::Tensor& a, const weft::Tensor& b, int64_t past) {
  const auto formula = [past](const weft::Tensor& x, const weft::Tensor& y) {
    return x.mul(y).sum(axes_from(0, past));
  };
  return deferred_tensor(wider(a.dtype(), b.dtype()), a.shape().subspan(size_t(past)), formula, a,
                         b);
}

// ---- layers

Three layer_norm(const at::Tensor& input, at::IntArrayRef normalized_shape,
                 const MaybeTensor& weight, const MaybeTensor& bias, double eps) {
  const at::Tensor none;
  at::native::_check_layer_norm_inputs(input, normalized_shape, is_given(weight) ? *weight : none,
                                       is_given(bias) ? *bias : none);
  const int64_t first = input.dim() - int64_t(normalized_shape.size());
  std::vector<int64_t> kept = list_of(input.sizes());
  std::fill(kept.begin() + first, kept.end(), 1);
  const c10::ScalarType type = type_of_statistics(input, weight);
  if (input.numel() == 0) {
    at::Tensor mean = empty(kept, type), rstd = empty(kept, type);
    if (mean.numel() != 0) {
      put(mean, number(0, type));
      put(rstd, number(std::numeric_limits<double>::quiet_NaN(), type));
    }
    return {empty(input.sizes(), input.scalar_type()), mean, rstd};
  }
  const weft::Tensor x = wide_operand(input);
  const auto [mean, rstd] = moments(x, first, input.dim(), eps);
  weft::Tensor y = scaled(normalized(x, mean, rstd), wide_operand(weight), wide_operand(bias));
  return {give(std::move(y), input.scalar_type()), give(mean, type), give(rstd, type)};
}

Three layer_norm_backward(const at::Tensor& gradient, const at::Tensor& input,
                          at::IntArrayRef normalized_shape, const at::Tensor& mean,
                          const at::Tensor& rstd, const MaybeTensor& weight,
                          const MaybeTensor& bias, std::array<bool, 3> wanted) {
  const int64_t first = input.dim() - int64_t(normalized_shape.size());
  Three result;
  if (input.numel() == 0) {
    if (wanted[0]) std::get<0>(result) = empty(input.sizes(), input.scalar_type());
    if (wanted[1] && is_given(weight)) std::get<1>(result) = zeros_of(*weight);
    if (wanted[2] && is_given(bias)) std::get<2>(result) = zeros_of(*bias);
    return result;
  }
  Sizes kept(ints(input.sizes()));
  std::fill(kept.begin() + first, kept.end(), 1);
  check_sizes("the gradient", gradient, input.sizes());
  check_sizes("the mean", mean, ints(kept));
  check_sizes("the deviation", rstd, ints(kept));
  const weft::Tensor g = wide_operand(gradient), r = wide_operand(rstd);
  const weft::Tensor xhat = normalized(wide_operand(input), wide_operand(mean), r);
  if (wanted[0]) {
    const weft::Tensor by_xhat = is_given(weight) ? g.mul(wide_operand(*weight)) : g;
    std::get<0>(result) =
        give(through_moments(by_xhat, xhat, r, first, input.dim()), input.scalar_type());
  }
  if (wanted[1] && is_given(weight)) {
    std::get<1>(result) = give(summed_product(g, xhat, first), weight->scalar_type());
  }
  if (wanted[2] && is_given(bias)) {
    std::get<2>(result) = give(g.sum(axes_from(0, first)), bias->scalar_type());
  }
  return result;
}

// ---- groups of channels

// (n, channels, places) as (n, groups, channels of a group, places), and a parameter beside it.
weft::Tensor in_groups(const at::Tensor& x, int64_t n, int64_t c, int64_t places, int64_t groups) {
  return wide_operand(x).reshape({n, groups, c / groups, places});
}
weft::Tensor parameter_in_groups(const at::Tensor& p, int64_t groups) {
  return wide_operand(p).reshape({1, groups, p.numel() / groups, 1});
}

Three group_norm(const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                 int64_t n, int64_t c, int64_t places, int64_t groups, double eps) {
  TORCH_CHECK(groups > 0 && c % groups == 0, "Expected number of channels in input to be ",
              "divisible by num_groups, but got input of shape ", input.sizes(),
              " and num_groups=", groups);
  const c10::ScalarType type = type_of_statistics(input, weight);
  if (input.numel() == 0) {
    at::Tensor mean = empty({n, groups}, type), rstd = empty({n, groups}, type);
    put(mean, number(0, type));
    put(rstd, number(std::numeric_limits<double>::quiet_NaN(), type));
    return {empty(input.sizes(), input.scalar_type()), mean, rstd};
  }
  const weft::Tensor x = in_groups(input, n, c, places, groups);
  const auto [mean, rstd] = moments(x, 2, 4, eps);
  const auto parameter = [&](const MaybeTensor& p) -> std::optional<weft::Tensor> {
    if (!is_given(p)) return {};
    return parameter_in_groups(*p, groups);
  };
  const weft::Tensor y = scaled(normalized(x, mean, rstd), parameter(weight), parameter(bias));
  return {
      give_in(y.reshape(ints(input.sizes())), input.scalar_type(), input.suggest_memory_format()),
      give(mean.reshape({n, groups}), type), give(rstd.reshape({n, groups}), type)};
}

Three group_norm_backward(const at::Tensor& gradient, const at::Tensor& input,
                          const at::Tensor& mean, const at::Tensor& rstd, const MaybeTensor& weight,
                          int64_t n, int64_t c, int64_t places, int64_t groups,
                          std::array<bool, 3> wanted) {
  Three result;
  const auto parameter = [&] {
    return is_given(weight) ? weight->scalar_type() : input.scalar_type();
  };
  if (input.numel() == 0) {
    if (wanted[0]) std::get<0>(result) = empty(input.sizes(), input.scalar_type());
    const auto zeros = [&] {
      at::Tensor z = empty({c}, parameter());
      put(z, number(0, parameter()));
      return z;
    };
    if (wanted[1]) std::get<1>(result) = zeros();
    if (wanted[2]) std::get<2>(result) = zeros();
    return result;
  }
  const weft::Tensor g = in_groups(gradient, n, c, places, groups);
  const weft::Tensor r = wide_operand(rstd).reshape({n, groups, 1, 1});
  const weft::Tensor m = wide_operand(mean).reshape({n, groups, 1, 1});
  const weft::Tensor xhat = normalized(in_groups(input, n, c, places, groups), m, r);
  if (wanted[0]) {
    const weft::Tensor by_xhat = is_given(weight) ? g.mul(parameter_in_groups(*weight, groups)) : g;
    const weft::Tensor dx = through_moments(by_xhat, xhat, r, 2, 4);
    std::get<0>(result) = give_in(dx.reshape(ints(input.sizes())), input.scalar_type(),
                                  input.suggest_memory_format());
  }
  const std::vector<int64_t> over{0, 3};
  if (wanted[1]) std::get<1>(result) = give(g.mul(xhat).sum(over).reshape({c}), parameter());
  if (wanted[2]) std::get<2>(result) = give(g.sum(over).reshape({c}), parameter());
  return result;
}

// ---- root mean squares

double eps_of(const at::Tensor& input, std::optional<double> eps) {
  if (eps) return *eps;
  switch (input.scalar_type()) {
    case at::kDouble: return std::numeric_limits<double>::epsilon();
    default: return double(std::numeric_limits<float>::epsilon());
  }
}

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& input,
                                            at::IntArrayRef normalized_shape,
                                            const MaybeTensor& weight, std::optional<double> eps) {
  const at::Tensor none;
  at::native::_check_rms_norm_inputs_symint(input, c10::fromIntArrayRefSlow(normalized_shape),
                                            is_given(weight) ? *weight : none);
  const int64_t first = input.dim() - int64_t(normalized_shape.size());
  const weft::Tensor x = wide_operand(input);
  Sizes kept(x.shape());
  std::fill(kept.begin() + first, kept.end(), 1);
  const auto rstd_of = [first, added = eps_of(input, eps)](const weft::Tensor& t) {
    return t.square().mean(axes_from(first, t.ndim()), true).add(added).rsqrt();
  };
  const weft::Tensor rstd = deferred_tensor(x.dtype(), kept, rstd_of, x);
  weft::Tensor y = scaled(x.mul(rstd), wide_operand(weight), {});
  const c10::ScalarType type = input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return {give(std::move(y), input.scalar_type()), give(rstd, type)};
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(
    const at::Tensor& gradient, const at::Tensor& input, at::IntArrayRef normalized_shape,
    const at::Tensor& rstd, const MaybeTensor& weight, std::array<bool, 2> wanted) {
  const int64_t first = input.dim() - int64_t(normalized_shape.size());
  const weft::Tensor g = wide_operand(gradient), r = wide_operand(rstd);
  const weft::Tensor xhat = wide_operand(input).mul(r);
  at::Tensor by_input, by_weight;
  if (wanted[0]) {
    const weft::Tensor by_xhat = is_given(weight) ? g.mul(wide_operand(*weight)) : g;
    const weft::Tensor slope = by_xhat.mul(xhat).mean(axes_from(first, input.dim()), true);
    by_input = give(by_xhat.sub(xhat.mul(slope)).mul(r), input.scalar_type());
  }
  if (wanted[1] && is_given(weight)) {
    by_weight = give(g.mul(xhat).sum(axes_from(0, first)), weight->scalar_type());
  }
  return {by_input, by_weight};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::native_layer_norm, layer_norm>(m);
  native<at::_ops::native_layer_norm_backward, layer_norm_backward>(m);
  native<at::_ops::native_group_norm, group_norm>(m);
  native<at::_ops::native_group_norm_backward, group_norm_backward>(m);
  native<at::_ops::_fused_rms_norm, rms_norm>(m);
  native<at::_ops::_fused_rms_norm_backward, rms_norm_backward>(m);
}

}  // namespace
}  // namespace weft::pytorch
