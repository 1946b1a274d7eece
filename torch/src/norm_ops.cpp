// Layer, group and root-mean-square normalisation.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/native/layer_norm.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "base/ref.h"
#include "convert.h"
#include "elementwise.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "scaled.h"
#include "storage.h"
#include "tensor/calls.h"
#include "value/value.h"
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
  const auto axes = axes_from(first, past);
  const weft::Tensor mean = x.mean(axes, true);
  return {mean, x.sub(mean).square().mean(axes, true).add(eps).rsqrt()};
}

// (x - mean) rstd
constexpr auto kCentred =
    row("centred", [](const weft::Tensor& x, const weft::Tensor& mean, const weft::Tensor& rstd) {
      return x.sub(mean).mul(rstd);
    });
Ref<Value> centred(const Ref<Value>& x, const Ref<Value>& mean, const Ref<Value>& rstd) {
  return call<kCentred>({wider(x->dtype(), rstd->dtype()), x->shape()}, x, mean, rstd);
}

// The gradient by x of xhat = (x - mean) rstd, of that by xhat.
weft::Tensor through(int64_t first, int64_t past, const weft::Tensor& by, const weft::Tensor& xhat,
                     const weft::Tensor& rstd) {
  const auto axes = axes_from(first, past);
  const weft::Tensor level = by.mean(axes, true), slope = by.mul(xhat).mean(axes, true);
  return by.sub(level).sub(xhat.mul(slope)).mul(rstd);
}
constexpr auto kThroughMoments = row<through>("norm_backward");
Ref<Value> through_moments(const Ref<Value>& g, const Ref<Value>& xhat, const Ref<Value>& rstd,
                           int64_t first, int64_t past) {
  return call<kThroughMoments>({wider(g->dtype(), xhat->dtype()), g->shape()}, first, past, g, xhat,
                               rstd);
}

// a b, which stands beside the last axes of a.
constexpr auto kProduct =
    row("product", [](const weft::Tensor& x, const weft::Tensor& y) { return x.mul(y); });
Ref<Value> product(const Ref<Value>& a, const Ref<Value>& b) {
  return call<kProduct>({wider(a->dtype(), b->dtype()), a->shape()}, a, b);
}
// The sum over axes [0, past),
constexpr auto kSummed =
    row("summed", [](int64_t past, const weft::Tensor& x) { return x.sum(axes_from(0, past)); });
Ref<Value> summed(const Ref<Value>& a, int64_t past) {
  return call<kSummed>({a->dtype(), a->shape().subspan(size_t(past))}, past, a);
}
// ... of a product.
constexpr auto kSummedProduct =
    row("summed_product", [](int64_t past, const weft::Tensor& x, const weft::Tensor& y) {
      return x.mul(y).sum(axes_from(0, past));
    });
Ref<Value> summed_product(const Ref<Value>& a, const Ref<Value>& b, int64_t past) {
  return call<kSummedProduct>({wider(a->dtype(), b->dtype()), a->shape().subspan(size_t(past))},
                              past, a, b);
}

// ---- layers

struct LayerNorm {
  static constexpr std::string_view kName = "layer_norm";
  int64_t first = 0;  // of the axes
  double eps = 0;

  auto fields() { return std::tie(first, eps); }
  weft::Tensor mean(const weft::Tensor& x) const { return moments(x, first, x.ndim(), 0).mean; }
  weft::Tensor rstd(const weft::Tensor& x) const { return moments(x, first, x.ndim(), eps).rstd; }
  weft::Tensor of(const weft::Tensor& x) const { return x.sub(mean(x)).mul(rstd(x)); }
  static weft::Tensor beside(const weft::Tensor& p, const weft::Tensor&) { return p; }
};
constexpr auto kLayerMean = row(
    "layer_norm_mean", [](const LayerNorm& norm, const weft::Tensor& x) { return norm.mean(x); });
constexpr auto kLayerRstd = row(
    "layer_norm_rstd", [](const LayerNorm& norm, const weft::Tensor& x) { return norm.rstd(x); });

Three layer_norm(const at::Tensor& input, at::IntArrayRef normalized_shape,
                 const MaybeTensor& weight, const MaybeTensor& bias, double eps) {
  check_floats(input.scalar_type());
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
  const Ref<Value> x = wide_value(input);
  const LayerNorm norm{first, eps};
  const Ints shape = ints(at::IntArrayRef(kept));
  return {give(scaled(x, norm, weight, bias), input.scalar_type()),
          give(call<kLayerMean>({x->dtype(), shape}, norm, x), type),
          give(call<kLayerRstd>({x->dtype(), shape}, norm, x), type)};
}

Three layer_norm_backward(const at::Tensor& gradient, const at::Tensor& input,
                          at::IntArrayRef normalized_shape, const at::Tensor& mean,
                          const at::Tensor& rstd, const MaybeTensor& weight,
                          const MaybeTensor& bias, std::array<bool, 3> wanted) {
  check_floats(input.scalar_type());
  const at::Tensor none;
  at::native::_check_layer_norm_inputs(input, normalized_shape, is_given(weight) ? *weight : none,
                                       is_given(bias) ? *bias : none);
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
  const Ref<Value> g = wide_value(gradient), r = wide_value(rstd);
  const Ref<Value> xhat = centred(wide_value(input), wide_value(mean), r);
  if (wanted[0]) {
    const Ref<Value> by_xhat = is_given(weight) ? product(g, wide_value(*weight)) : g;
    std::get<0>(result) =
        give(through_moments(by_xhat, xhat, r, first, input.dim()), input.scalar_type());
  }
  if (wanted[1] && is_given(weight)) {
    std::get<1>(result) = give(summed_product(g, xhat, first), weight->scalar_type());
  }
  if (wanted[2] && is_given(bias)) {
    std::get<2>(result) = give(summed(g, first), bias->scalar_type());
  }
  return result;
}

// ---- groups of channels

// (n, channels, places) as (n, groups, channels of a group, places), and what stands beside it.
struct Groups {
  int64_t n, c, places, groups;

  auto fields() { return std::tie(n, c, places, groups); }
  weft::Tensor of(const weft::Tensor& x) const {
    return x.reshape({n, groups, c / groups, places});
  }
  weft::Tensor of_parameter(const weft::Tensor& p) const {
    return p.reshape({1, groups, c / groups, 1});
  }
  weft::Tensor of_statistic(const weft::Tensor& s) const { return s.reshape({n, groups, 1, 1}); }
  bool is_vector(const at::Tensor& x) const { return x.dim() == 1 && x.numel() == c; }
  void check(const at::Tensor& x, const MaybeTensor& weight, const MaybeTensor& bias) const {
    TORCH_CHECK(x.numel() == n * c * places, "Expected ", n, "x", c, "x", places, " elements, got ",
                x.sizes());
    TORCH_CHECK(!is_given(weight) || is_vector(*weight), "Expected weight to be a vector of ",
                "size equal to the number of channels in input, but got weight of shape ",
                weight->sizes());
    TORCH_CHECK(!is_given(bias) || is_vector(*bias), "Expected bias to be a vector of size ",
                "equal to the number of channels in input, but got bias of shape ", bias->sizes());
  }
};

// (x - mean) rstd, as x is.
constexpr auto kCentredInGroups =
    row("centred_in_groups", [](Ints shape, const Groups& rows, const weft::Tensor& x,
                                const weft::Tensor& mean, const weft::Tensor& rstd) {
      const weft::Tensor centred = rows.of(x).sub(rows.of_statistic(mean));
      return centred.mul(rows.of_statistic(rstd)).reshape(shape);
    });
Ref<Value> centred_in_groups(const Groups& rows, const Ref<Value>& x, const Ref<Value>& mean,
                             const Ref<Value>& rstd) {
  return call<kCentredInGroups>({wider(x->dtype(), rstd->dtype()), x->shape()}, rows, x, mean,
                                rstd);
}
constexpr auto kGroupMean =
    row("group_norm_mean", [](Ints shape, const Groups& rows, const weft::Tensor& x) {
      return rows.of(x).mean(axes_from(2, 4)).reshape(shape);
    });
constexpr auto kGroupRstd =
    row("group_norm_rstd", [](Ints shape, const Groups& rows, double eps, const weft::Tensor& x,
                              const weft::Tensor& mean) {
      const weft::Tensor squares = rows.of(x).sub(rows.of_statistic(mean)).square();
      return squares.mean(axes_from(2, 4)).add(eps).rsqrt().reshape(shape);
    });
// Of what is centred already.
struct GroupNorm {
  static constexpr std::string_view kName = "group_norm";
  Groups rows;

  auto fields() { return std::tie(rows); }
  weft::Tensor of(const weft::Tensor& x) const { return rows.of(x); }
  weft::Tensor beside(const weft::Tensor& p, const weft::Tensor&) const {
    return rows.of_parameter(p);
  }
};

Three group_norm(const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                 int64_t n, int64_t c, int64_t places, int64_t groups, double eps) {
  check_floats(input.scalar_type());
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
  const Groups rows{n, c, places, groups};
  rows.check(input, weight, bias);
  const Ref<Value> x = wide_value(input);
  const int64_t kept[] = {n, groups};
  Ref<Value> mean = call<kGroupMean>({x->dtype(), Ints(kept)}, rows, x);
  Ref<Value> rstd = call<kGroupRstd>({x->dtype(), Ints(kept)}, rows, eps, x, mean);
  const Ref<Value> xhat = centred_in_groups(rows, x, mean, rstd);
  return {give_in(scaled(xhat, GroupNorm{rows}, weight, bias), input.scalar_type(),
                  input.suggest_memory_format()),
          give(std::move(mean), type), give(std::move(rstd), type)};
}

// That by xhat, of that by xhat times a weight.
constexpr auto kGroupByXhat =
    row("group_norm_by_xhat",
        [](Ints shape, const Groups& rows, const weft::Tensor& by, const weft::Tensor& w) {
          return rows.of(by).mul(rows.of_parameter(w)).reshape(shape);
        });
Ref<Value> by_xhat(const Groups& rows, const Ref<Value>& gradient, const Ref<Value>& weight) {
  return call<kGroupByXhat>({wider(gradient->dtype(), weight->dtype()), gradient->shape()}, rows,
                            gradient, weight);
}
constexpr auto kGroupByInput =
    row("group_norm_by_input", [](Ints shape, const Groups& rows, const weft::Tensor& by,
                                  const weft::Tensor& xhat, const weft::Tensor& rstd) {
      return through(2, 4, rows.of(by), rows.of(xhat), rows.of_statistic(rstd)).reshape(shape);
    });
constexpr auto kGroupByWeight =
    row("group_norm_by_weight",
        [](const Groups& rows, const weft::Tensor& by, const weft::Tensor& xhat) {
          const weft::Tensor product = rows.of(by).mul(rows.of(xhat));
          return product.sum(std::vector<int64_t>{0, 3}).reshape({rows.c});
        });
constexpr auto kGroupByBias =
    row("group_norm_by_bias", [](const Groups& rows, const weft::Tensor& by) {
      return rows.of(by).sum(std::vector<int64_t>{0, 3}).reshape({rows.c});
    });

Three group_norm_backward(const at::Tensor& gradient, const at::Tensor& input,
                          const at::Tensor& mean, const at::Tensor& rstd, const MaybeTensor& weight,
                          int64_t n, int64_t c, int64_t places, int64_t groups,
                          std::array<bool, 3> wanted) {
  check_floats(input.scalar_type());
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
  const Groups rows{n, c, places, groups};
  rows.check(input, weight, {});
  rows.check(gradient, {}, {});
  TORCH_CHECK(mean.numel() == n * groups && rstd.numel() == n * groups, "Expected ", n, "x", groups,
              " statistics, got ", mean.sizes(), " and ", rstd.sizes());
  const Ref<Value> g = wide_value(gradient), r = wide_value(rstd);
  const Ref<Value> xhat = centred_in_groups(rows, wide_value(input), wide_value(mean), r);
  if (wanted[0]) {
    const Ref<Value> by_rows = is_given(weight) ? by_xhat(rows, g, wide_value(*weight)) : g;
    const DType dtype = wider(by_rows->dtype(), xhat->dtype());
    std::get<0>(result) =
        give_in(call<kGroupByInput>({dtype, xhat->shape()}, rows, by_rows, xhat, r),
                input.scalar_type(), input.suggest_memory_format());
  }
  if (wanted[1]) {
    const DType dtype = wider(g->dtype(), xhat->dtype());
    std::get<1>(result) = give(call<kGroupByWeight>({dtype, {c}}, rows, g, xhat), parameter());
  }
  if (wanted[2]) {
    std::get<2>(result) = give(call<kGroupByBias>({g->dtype(), {c}}, rows, g), parameter());
  }
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

// How many axes stand before the normalised ones.
int64_t check_rms_norm(const at::Tensor& input, at::IntArrayRef normalized_shape,
                       const MaybeTensor& weight) {
  const int64_t first = input.dim() - int64_t(normalized_shape.size());
  const bool fits = !normalized_shape.empty() && first >= 0 &&
                    input.sizes().slice(size_t(first)) == normalized_shape &&
                    (!is_given(weight) || weight->sizes() == normalized_shape);
  if (!fits) {  // PyTorch's check says why; it writes its message before it looks
    const at::Tensor none;
    at::native::_check_rms_norm_inputs_symint(input, c10::fromIntArrayRefSlow(normalized_shape),
                                              is_given(weight) ? *weight : none);
  }
  return first;
}

weft::Tensor rms_rstd(int64_t first, double eps, const weft::Tensor& x) {
  return x.square().mean(axes_from(first, x.ndim()), true).add(eps).rsqrt();
}
constexpr auto kRmsRstd = row<rms_rstd>("rms_norm_rstd");
constexpr auto kRmsNorm = row("rms_norm", [](int64_t first, double eps, const weft::Tensor& x) {
  return x.mul(rms_rstd(first, eps, x));
});
constexpr auto kScaledRmsNorm =
    row("scaled_rms_norm",
        [](int64_t first, double eps, const weft::Tensor& x, const weft::Tensor& weight) {
          return x.mul(rms_rstd(first, eps, x)).mul(weight);
        });
constexpr auto kRmsByInput =
    row("rms_norm_by_input",
        [](int64_t first, const weft::Tensor& by, const weft::Tensor& x, const weft::Tensor& rstd) {
          const weft::Tensor xhat = x.mul(rstd);
          const weft::Tensor slope = by.mul(xhat).mean(axes_from(first, x.ndim()), true);
          return by.sub(xhat.mul(slope)).mul(rstd);
        });
constexpr auto kRmsByWeight =
    row("rms_norm_by_weight",
        [](int64_t first, const weft::Tensor& by, const weft::Tensor& x, const weft::Tensor& rstd) {
          return by.mul(x.mul(rstd)).sum(axes_from(0, first));
        });

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& input,
                                            at::IntArrayRef normalized_shape,
                                            const MaybeTensor& weight, std::optional<double> eps) {
  const int64_t first = check_rms_norm(input, normalized_shape, weight);
  const Ref<Value> x = wide_value(input);
  Sizes kept(x->shape());
  std::fill(kept.begin() + first, kept.end(), 1);
  const double added = eps_of(input, eps);
  const auto normalized_by = [&](const Ref<Value>& w) {
    return call<kScaledRmsNorm>({wider(x->dtype(), w->dtype()), x->shape()}, first, added, x, w);
  };
  const c10::ScalarType type = input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return {give(is_given(weight) ? normalized_by(wide_value(*weight))
                                : call<kRmsNorm>({x->dtype(), x->shape()}, first, added, x),
               input.scalar_type()),
          give(call<kRmsRstd>({x->dtype(), kept}, first, added, x), type)};
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(
    const at::Tensor& gradient, const at::Tensor& input, at::IntArrayRef normalized_shape,
    const at::Tensor& rstd, const MaybeTensor& weight, std::array<bool, 2> wanted) {
  const int64_t first = check_rms_norm(input, normalized_shape, weight);
  Sizes kept(ints(input.sizes()));
  std::fill(kept.begin() + first, kept.end(), 1);
  check_sizes("the gradient", gradient, input.sizes());
  check_sizes("the deviation", rstd, ints(kept));
  const Ref<Value> g = wide_value(gradient), r = wide_value(rstd), x = wide_value(input);
  at::Tensor by_input, by_weight;
  if (wanted[0]) {
    const Ref<Value> by_xhat = is_given(weight) ? product(g, wide_value(*weight)) : g;
    const DType dtype = wider(wider(by_xhat->dtype(), x->dtype()), r->dtype());
    by_input =
        give(call<kRmsByInput>({dtype, x->shape()}, first, by_xhat, x, r), input.scalar_type());
  }
  if (wanted[1] && is_given(weight)) {
    const DType dtype = wider(wider(g->dtype(), x->dtype()), r->dtype());
    by_weight = give(call<kRmsByWeight>({dtype, x->shape().subspan(size_t(first))}, first, g, x, r),
                     weight->scalar_type());
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
