// Extremes and where they are, and elements by their rank.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/ops/aminmax_meta.h>
#include <ATen/ops/argmax_meta.h>
#include <ATen/ops/argmin_meta.h>
#include <ATen/ops/max_meta.h>
#include <ATen/ops/min_meta.h>
#include <torch/library.h>

#include "ir/op.h"
#include "native.h"
#include "operators.h"
#include "reductions.h"
#include "storage.h"
#include "structured.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using Two = std::array<weft::Tensor, 2>;

weft::Tensor extreme(Op op, const weft::Tensor& x, const Axes& axes, bool keepdim) {
  const Op of_bools = op == Op::MAX ? Op::OR : Op::AND;
  return x.reduce(x.dtype().is_bool() ? of_bools : op, axes, keepdim);
}

template <auto method>
weft::Tensor place(const Shaped&, const at::Tensor& self, std::optional<int64_t> dim,
                   bool keepdim) {
  return (operand(self).*method)(dim, keepdim);
}

template <Op op>
Two along(const Shaped&, const at::Tensor& self, int64_t dim, bool keepdim) {
  const weft::Tensor x = operand(self);
  return {extreme(op, x, axis_of(self, dim), keepdim),
          op == Op::MAX ? x.argmax(dim, keepdim) : x.argmin(dim, keepdim)};
}

template <Op op>
weft::Tensor of_all(const Shaped&, const at::Tensor& self) {
  return extreme(op, operand(self), {}, false);
}
struct ExtremeMeta : at::impl::MetaBase {
  void meta(const at::Tensor& self) {
    TORCH_CHECK(
        self.numel() > 0,
        "operation does not have an identity: the tensor has no elements, and so no extreme");
    set_output_raw_strided(0, {}, {}, self.options());
  }
};

Two aminmax(const Shaped&, const at::Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  const weft::Tensor x = operand(self);
  const Axes axes = dim ? axis_of(self, *dim) : Axes();
  return {extreme(Op::MIN, x, axes, keepdim), extreme(Op::MAX, x, axes, keepdim)};
}

// ---- by rank: NaN is larger than all

enum class Nans : uint8_t { kWin, kIgnored };

// Results with the axis of size 1, as the operand's shape and `keepdim` want them.
Two without_axis(Two results, const weft::Tensor& given, int64_t dim, bool keepdim) {
  for (weft::Tensor& each : results) {
    if (given.ndim() == 0) {
      each = each.reshape(Ints{});
    } else if (!keepdim) {
      each = each.squeeze(dim);
    }
  }
  return results;
}

// The element in the middle, the lower of two.
Two median_of(const weft::Tensor& given, int64_t dim, bool keepdim, Nans nans) {
  const weft::Tensor x = given.ndim() == 0 ? given.reshape({1}) : given;
  const Axes axes = std::vector<int64_t>{dim};
  const int64_t n = x.shape()[size_t(dim < 0 ? dim + x.ndim() : dim)], middle = (n - 1) / 2;
  const auto [values, places] = x.sort(dim);
  weft::Tensor rank = x.isnan().cast(dtypes::int64).sum(axes, true, dtypes::int64);
  if (nans == Nans::kWin) {
    rank = weft::Tensor::where(rank.gt(int64_t(0)), rank.neg().add(n), middle);
  } else {
    rank = rank.neg().add(n - 1).div(int64_t(2), Rounding::kTowardZero).maximum(int64_t(0));
  }
  return without_axis({values.gather(dim, rank), places.gather(dim, rank)}, given, dim, keepdim);
}

// Values as the operand, and their places.
struct PlacesMeta : at::impl::MetaBase {
  void set_reduced(const at::Tensor& self, int64_t dim, bool keepdim, const char* name) {
    const int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    at::native::zero_numel_check_dims(self, axis, name);
    std::vector<int64_t> sizes = self.sizes().vec();
    if (!sizes.empty() && keepdim) sizes[size_t(axis)] = 1;
    if (!sizes.empty() && !keepdim) sizes.erase(sizes.begin() + axis);
    set_output_raw_strided(0, sizes, {}, self.options());
    set_output_raw_strided(1, sizes, {}, self.options().dtype(at::kLong));
  }
};
struct MedianMeta : PlacesMeta {
  void meta(const at::Tensor& self, int64_t dim, bool keepdim) {
    set_reduced(self, dim, keepdim, "median()");
  }
};
struct ModeMeta : PlacesMeta {
  void meta(const at::Tensor& self, int64_t dim, bool keepdim) {
    set_reduced(self, dim, keepdim, "mode()");
  }
};
template <Nans nans>
Two median_along(const Shaped&, const at::Tensor& self, int64_t dim, bool keepdim) {
  return median_of(operand(self), at::maybe_wrap_dim(dim, self.dim()), keepdim, nans);
}
template <Nans nans>
at::Tensor median_of_all(const at::Tensor& self) {
  if (self.numel() == 0) return give(number(std::nan(""), self.scalar_type()), self.scalar_type());
  return give(median_of(operand(self).flatten(), 0, false, nans)[0], self.scalar_type());
}

// ---- by count: of the most frequent values the least, and its last place

Two mode_of(const weft::Tensor& given, int64_t dim, bool keepdim) {
  const weft::Tensor whole = given.dtype().is_bool() ? given.cast(dtypes::uint8) : given;
  const weft::Tensor x = whole.ndim() == 0 ? whole.reshape({1}) : whole;
  const weft::Tensor rows = x.transpose(dim, -1);
  const Axes last = std::vector<int64_t>{-1};
  const weft::Tensor equal = rows.unsqueeze(-1).eq(rows.unsqueeze(-2));
  const weft::Tensor count = equal.cast(dtypes::int32).sum(last);
  const weft::Tensor is_frequent = count.eq(count.max(last, true));
  const weft::Tensor most = rows.max(last, true);
  const weft::Tensor value = weft::Tensor::where(is_frequent, rows, most).min(last, true);
  const weft::Tensor place = weft::Tensor::arange(int64_t(0), rows.shape().back(), int64_t(1),
                                                  dtypes::int64, given.device());
  const weft::Tensor index = weft::Tensor::where(rows.eq(value), place, int64_t(0)).max(last, true);
  return without_axis({value.transpose(dim, -1), index.transpose(dim, -1)}, given, dim, keepdim);
}
Two mode(const Shaped&, const at::Tensor& self, int64_t dim, bool keepdim) {
  return mode_of(operand(self), at::maybe_wrap_dim(dim, self.dim()), keepdim);
}

// NOLINTBEGIN: PyTorch's macros
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<at::meta::structured_argmax, place<&weft::Tensor::argmax>, at::_ops::argmax,
             at::_ops::argmax_out>(m);
  structured<at::meta::structured_argmin, place<&weft::Tensor::argmin>, at::_ops::argmin,
             at::_ops::argmin_out>(m);
  structured<at::meta::structured_max_dim, along<Op::MAX>, at::_ops::max_dim,
             at::_ops::max_dim_max>(m);
  structured<at::meta::structured_min_dim, along<Op::MIN>, at::_ops::min_dim,
             at::_ops::min_dim_min>(m);
  structured<ExtremeMeta, of_all<Op::MAX>, at::_ops::max, at::_ops::max_unary_out>(m);
  structured<ExtremeMeta, of_all<Op::MIN>, at::_ops::min, at::_ops::min_unary_out>(m);
  structured<at::meta::structured_aminmax, aminmax, at::_ops::aminmax, at::_ops::aminmax_out>(m);
  structured<MedianMeta, median_along<Nans::kWin>, at::_ops::median_dim,
             at::_ops::median_dim_values>(m);
  structured<MedianMeta, median_along<Nans::kIgnored>, at::_ops::nanmedian_dim,
             at::_ops::nanmedian_dim_values>(m);
  structured<ModeMeta, mode, at::_ops::mode, at::_ops::mode_values>(m);
  native<at::_ops::median, median_of_all<Nans::kWin>>(m);
  native<at::_ops::nanmedian, median_of_all<Nans::kIgnored>>(m);
}
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
