// Extremes and where they are, and elements by their rank.
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

#include "convert.h"
#include "ir/op.h"
#include "native.h"
#include "operators.h"
#include "reductions.h"
#include "storage.h"
#include "structured.h"
#include "tensor/calls.h"
#include "tensor/places.h"
#include "tensor/positions.h"
#include "values_and_places.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

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

// The place of the element in the middle, the lower of two, with size 1 along the axis.
weft::Tensor place_of_median(const weft::Tensor& x, int64_t axis, Nans nans) {
  const int64_t n = x.shape()[size_t(axis)], middle = (n - 1) / 2;
  weft::Tensor rank =
      x.isnan().cast(dtypes::int64).sum(std::vector<int64_t>{axis}, true, dtypes::int64);
  if (nans == Nans::kWin) {
    rank = weft::Tensor::where(rank.gt(int64_t(0)), rank.neg().add(n), middle);
  } else {
    rank = rank.neg().add(n - 1).div(int64_t(2), Rounding::kTowardZero);
  }
  // It is in range anyway: this says so.
  return place_of_rank(x, axis, rank.maximum(int64_t(0)).minimum(n - 1));
}
constexpr auto kMedian =
    row("median", [](Ints shape, int64_t axis, Nans nans, const weft::Tensor& x) {
      return place_of_median(row_of(x), axis, nans).reshape(shape);
    });
constexpr auto kMedianOfAll = row("median_of_all", [](Nans nans, const weft::Tensor& x) {
  const weft::Tensor flat = x.flatten();
  return flat.gather(0, place_of_median(flat, 0, nans)).reshape(Ints());
});
Two median_of(const weft::Tensor& x, int64_t axis, Ints shape, Nans nans) {
  const int64_t size = x.ndim() == 0 ? 1 : x.shape()[size_t(axis)];
  return values_and_places<kMedian>(x, axis, shape, values_of_order(size), nans);
}

struct MedianMeta : PlacesMeta {
  void meta(const at::Tensor& self, int64_t dim, bool keepdim) {
    at::native::zero_numel_check_dims(self, at::maybe_wrap_dim(dim, self.dim()), "median()");
    set_reduced(self, dim, keepdim);
  }
};
struct ModeMeta : PlacesMeta {
  void meta(const at::Tensor& self, int64_t dim, bool keepdim) {
    at::native::zero_numel_check_dims(self, at::maybe_wrap_dim(dim, self.dim()), "mode()");
    set_reduced(self, dim, keepdim);
  }
};
template <Nans nans>
Two median_along(const Shaped& s, const at::Tensor& self, int64_t dim, bool /*keepdim*/) {
  return median_of(operand(self), at::maybe_wrap_dim(dim, self.dim()), ints(s.out().sizes()), nans);
}
template <Nans nans>
at::Tensor median_of_all(const at::Tensor& self) {
  if (self.numel() == 0) return give(number(std::nan(""), self.scalar_type()), self.scalar_type());
  const weft::Tensor x = operand(self);
  const Outcome outcome{x.dtype(), {}, values_of_order(self.numel())};
  return give(call<kMedianOfAll>(outcome, nans, x), self.scalar_type());
}

// ---- by count: of the most frequent values the least, and its last place

// With size 1 along the axis.
weft::Tensor place_of_mode(const weft::Tensor& given, int64_t axis) {
  const weft::Tensor x = given.dtype().is_bool() ? given.cast(dtypes::uint8) : given;
  const weft::Tensor rows = x.transpose(axis, -1);
  const Axes last = std::vector<int64_t>{-1};
  // In order, equal ones are a run: the first of the longest ones. NaN equals nothing, and comes
  // last.
  const weft::Tensor sorted = rows.sort(-1).first;
  const weft::Tensor at = places_along(sorted, sorted.shape().size() - 1);
  const int64_t one[] = {1};
  const weft::Tensor is_first =
      at.eq(int64_t(0)).bitwise_or(sorted.ne(sorted.roll(Ints(one), last)));
  const weft::Tensor first = weft::Tensor::where(is_first, at, int64_t(0)).cummax(-1).first;
  const weft::Tensor value = sorted.gather(-1, at.sub(first).argmax(-1, true));
  const weft::Tensor place = positions(weft_device(), rows.shape().back());
  return weft::Tensor::where(rows.eq(value), place, int64_t(0)).max(last, true).transpose(axis, -1);
}
constexpr auto kMode = row("mode", [](Ints shape, int64_t axis, const weft::Tensor& x) {
  return place_of_mode(row_of(x), axis).reshape(shape);
});
Two mode(const Shaped& s, const at::Tensor& self, int64_t dim, bool /*keepdim*/) {
  const int64_t axis = at::maybe_wrap_dim(dim, self.dim());
  constexpr int64_t of_runs = 40;
  const int64_t size = self.dim() == 0 ? 1 : self.size(axis);
  return values_and_places<kMode>(operand(self), axis, ints(s.out().sizes()),
                                  values_of_order(size) + of_runs);
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
