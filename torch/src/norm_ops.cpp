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

#include "base/ref.h"
#include "convert.h"
#include "elementwise.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "scaled.h"
#include "storage.h"
#include "tensor/deferred_tensor.h"
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
Ref<Value> centred(const Ref<Value>& x, const Ref<Value>& mean, const Ref<Value>& rstd) {
  const auto formula = [](const weft::Tensor& t, const weft::Tensor& m, const weft::Tensor& r) {
    return t.sub(m).mul(r);
  };
  return deferred_value({wider(x->dtype(), rstd->dtype()), x->shape()}, formula, x, mean, rstd);
}

// The gradient by x of xhat = (x - mean) rstd, of that by xhat.
weft::Tensor through(const weft::Tensor& by, const weft::Tensor& xhat, const weft::Tensor& rstd,
                     int64_t first, int64_t past) {
  const auto axes = axes_from(first, past);
  const weft::Tensor level = by.mean(axes, true), slope = by.mul(xhat).mean(axes, true);
  return by.sub(level).sub(xhat.mul(slope)).mul(rstd);
}
Ref<Value> through_moments(const Ref<Value>& g, const Ref<Value>& xhat, const Ref<Value>& rstd,
                           int64_t first, int64_t past) {
  const auto formula = [first, past](const weft::Tensor& by, const weft::Tensor& x,
                                     const weft::Tensor& r) {
    return through(by, x, r, first, past);
  };
  return deferred_value({wider(g->dtype(), xhat->dtype()), g->shape()}, formula, g, xhat, rstd);
}

// a b, which stands beside the last axes of a.
Ref<Value> product(const Ref<Value>& a, const Ref<Value>& b) {
  const auto formula = [](const weft::Tensor& x, const weft::Tensor& y) { return x.mul(y); };
  return deferred_value({wider(a->dtype(), b->dtype()), a->shape()}, formula, a, b);
}
// The sum over axes [0, past),
Ref<Value> summed(const Ref<Value>& a, int64_t past) {
  const auto formula = [past](const weft::Tensor& x) { return x.sum(axes_from(0, past)); };
  return deferred_value({a->dtype(), a->shape().subspan(size_t(past))}, formula, a);
}
// ... of a product.
Ref<Value> summed_product(const Ref<Value>& a, const Ref<Value>& b, int64_t past) {
  const auto formula = [past](const weft::Tensor& x, const weft::Tensor& y) {
    return x.mul(y).sum(axes_from(0, past));
  };
  return deferred_value({wider(a->dtype(), b->dtype()), a->shape().subspan(size_t(past))}, formula,
                        a, b);
}

// ---- layers

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
  const auto mean_of = [first](const weft::Tensor& t) {
    return moments(t, first, t.ndim(), 0).mean;
  };
  const auto rstd_of = [first, eps](const weft::Tensor& t) {
    return moments(t, first, t.ndim(), eps).rstd;
  };
  const auto centred_of = [mean_of, rstd_of](const weft::Tensor& t) {
    return t.sub(mean_of(t)).mul(rstd_of(t));
  };
  const auto as_it_is = [](const weft::Tensor& p, const weft::Tensor&) { return p; };
  const Ints shape = ints(at::IntArrayRef(kept));
  return {give(scaled(x, centred_of, as_it_is, weight, bias), input.scalar_type()),
          give(deferred_value({x->dtype(), shape}, mean_of, x), type),
          give(deferred_value({x->dtype(), shape}, rstd_of, x), type)};
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

  weft::Tensor of(const weft::Tensor& x) const {
    return x.reshape({n, groups, c / groups, places});
  }
  weft::Tensor of_parameter(const weft::Tensor& p) const {
    return p.reshape({1, groups, c / groups, 1});
  }
  weft::Tensor of_statistic(const weft::Tensor& s) const { return s.reshape({n, groups, 1, 1}); }
  // (x - mean) rstd, as x is.
  Ref<Value> centred(const Ref<Value>& x, const Ref<Value>& mean, const Ref<Value>& rstd) const {
    const auto formula = [rows = *this](Ints shape, const weft::Tensor& t, const weft::Tensor& m,
                                        const weft::Tensor& r) {
      return rows.of(t).sub(rows.of_statistic(m)).mul(rows.of_statistic(r)).reshape(shape);
    };
    return deferred_value({wider(x->dtype(), rstd->dtype()), x->shape()}, formula, x, mean, rstd);
  }

  void check(const at::Tensor& x, const MaybeTensor& weight, const MaybeTensor& bias) const {
    TORCH_CHECK(x.numel() == n * c * places, "Expected ", n, "x", c, "x", places, " elements, got ",
                x.sizes());
    TORCH_CHECK(!is_given(weight) || weight->numel() == c, "Expected weight to be a vector of ",
                "size equal to the number of channels in input, but got weight of shape ",
                weight->sizes());
    TORCH_CHECK(!is_given(bias) || bias->numel() == c, "Expected bias to be a vector of size ",
                "equal to the number of channels in input, but got bias of shape ", bias->sizes());
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
  const auto mean_of = [rows](Ints shape, const weft::Tensor& t) {
    return rows.of(t).mean(axes_from(2, 4)).reshape(shape);
  };
  const auto rstd_of = [rows, eps](Ints shape, const weft::Tensor& t, const weft::Tensor& m) {
    const weft::Tensor squares = rows.of(t).sub(rows.of_statistic(m)).square();
    return squares.mean(axes_from(2, 4)).add(eps).rsqrt().reshape(shape);
  };
  Ref<Value> mean = deferred_value({x->dtype(), Ints(kept)}, mean_of, x);
  Ref<Value> rstd = deferred_value({x->dtype(), Ints(kept)}, rstd_of, x, mean);
  const Ref<Value> xhat = rows.centred(x, mean, rstd);
  const auto in_rows = [rows](const weft::Tensor& t) { return rows.of(t); };
  const auto beside = [rows](const weft::Tensor& p, const weft::Tensor&) {
    return rows.of_parameter(p);
  };
  return {give_in(scaled(xhat, in_rows, beside, weight, bias), input.scalar_type(),
                  input.suggest_memory_format()),
          give(std::move(mean), type), give(std::move(rstd), type)};
}

// That by xhat, of that by xhat times a weight.
Ref<Value> by_xhat(const Groups& rows, const Ref<Value>& gradient, const Ref<Value>& weight) {
  const auto formula = [rows](Ints shape, const weft::Tensor& by, const weft::Tensor& w) {
    return rows.of(by).mul(rows.of_parameter(w)).reshape(shape);
  };
  return deferred_value({wider(gradient->dtype(), weight->dtype()), gradient->shape()}, formula,
                        gradient, weight);
}

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
  const Ref<Value> xhat = rows.centred(wide_value(input), wide_value(mean), r);
  if (wanted[0]) {
    const Ref<Value> by_rows = is_given(weight) ? by_xhat(rows, g, wide_value(*weight)) : g;
    const auto formula = [rows](Ints shape, const weft::Tensor& by, const weft::Tensor& h,
                                const weft::Tensor& d) {
      return through(rows.of(by), rows.of(h), rows.of_statistic(d), 2, 4).reshape(shape);
    };
    const DType dtype = wider(by_rows->dtype(), xhat->dtype());
    std::get<0>(result) = give_in(deferred_value({dtype, xhat->shape()}, formula, by_rows, xhat, r),
                                  input.scalar_type(), input.suggest_memory_format());
  }
  if (wanted[1]) {
    const auto formula = [rows](const weft::Tensor& by, const weft::Tensor& h) {
      return rows.of(by).mul(rows.of(h)).sum(std::vector<int64_t>{0, 3}).reshape({rows.c});
    };
    std::get<1>(result) = give(
        deferred_value({wider(g->dtype(), xhat->dtype()), {c}}, formula, g, xhat), parameter());
  }
  if (wanted[2]) {
    const auto formula = [rows](const weft::Tensor& by) {
      return rows.of(by).sum(std::vector<int64_t>{0, 3}).reshape({rows.c});
    };
    std::get<2>(result) = give(deferred_value({g->dtype(), {c}}, formula, g), parameter());
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

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& input,
                                            at::IntArrayRef normalized_shape,
                                            const MaybeTensor& weight, std::optional<double> eps) {
  const int64_t first = check_rms_norm(input, normalized_shape, weight);
  const Ref<Value> x = wide_value(input);
  Sizes kept(x->shape());
  std::fill(kept.begin() + first, kept.end(), 1);
  const auto rstd_of = [first, added = eps_of(input, eps)](const weft::Tensor& t) {
    return t.square().mean(axes_from(first, t.ndim()), true).add(added).rsqrt();
  };
  const auto plain = [rstd_of](const weft::Tensor& t) { return t.mul(rstd_of(t)); };
  const auto scaled = [plain](const weft::Tensor& t, const weft::Tensor& w) {
    return plain(t).mul(w);
  };
  const auto normalized_by = [&](const Ref<Value>& w) {
    return deferred_value({wider(x->dtype(), w->dtype()), x->shape()}, scaled, x, w);
  };
  const c10::ScalarType type = input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return {give(is_given(weight) ? normalized_by(wide_value(*weight))
                                : deferred_value({x->dtype(), x->shape()}, plain, x),
               input.scalar_type()),
          give(deferred_value({x->dtype(), kept}, rstd_of, x), type)};
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
    const auto formula = [first](const weft::Tensor& by, const weft::Tensor& t,
                                 const weft::Tensor& d) {
      const weft::Tensor xhat = t.mul(d);
      const weft::Tensor slope = by.mul(xhat).mean(axes_from(first, t.ndim()), true);
      return by.sub(xhat.mul(slope)).mul(d);
    };
    const DType dtype = wider(wider(by_xhat->dtype(), x->dtype()), r->dtype());
    by_input =
        give(deferred_value({dtype, x->shape()}, formula, by_xhat, x, r), input.scalar_type());
  }
  if (wanted[1] && is_given(weight)) {
    const auto formula = [first](const weft::Tensor& by, const weft::Tensor& t,
                                 const weft::Tensor& d) {
      return by.mul(t.mul(d)).sum(axes_from(0, first));
    };
    const DType dtype = wider(wider(g->dtype(), x->dtype()), r->dtype());
    by_weight = give(deferred_value({dtype, x->shape().subspan(size_t(first))}, formula, g, x, r),
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
