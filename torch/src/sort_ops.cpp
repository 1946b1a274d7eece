// Orders: sort, topk, kthvalue, and what is there once.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/sort_meta.h>
#include <ATen/ops/topk_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "native.h"
#include "operators.h"
#include "reductions.h"
#include "storage.h"
#include "structured.h"
#include "tensor/chosen.h"
#include "tensor/places.h"
#include "tensor/positions.h"
#include "value/row.h"
#include "values_and_places.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

constexpr auto kRanked = row("ranked", [](Ints shape, int64_t axis, bool descending, int64_t first,
                                          int64_t count, const weft::Tensor& x) {
  if (first == 0) return row_of(x).topk(count, axis, descending).second.reshape(shape);
  std::vector<Index> at(size_t(axis) + 1, Slice{});
  at[size_t(axis)] = Slice{.start = first, .stop = first + count};
  return row_of(x).argsort(axis, descending).at(at).reshape(shape);
});

// `count` elements from rank `first` on, in order along an axis.
Two ranked(const at::Tensor& self, int64_t axis, bool descending, int64_t first, int64_t count,
           at::IntArrayRef sizes) {
  const int64_t size = self.dim() == 0 ? 1 : self.size(axis);
  return values_and_places<kRanked>(handle(self), axis, ints(sizes), values_of_order(size),
                                    descending, first, count);
}

constexpr auto kOfRank =
    row("of_rank", [](Ints shape, int64_t axis, int64_t rank, const weft::Tensor& x) {
      const weft::Tensor rows = row_of(x);
      Sizes of_places(rows.shape());
      of_places[size_t(axis)] = 1;
      const weft::Tensor ranks =
          weft::Tensor::full(of_places, rank, dtypes::int64, weft_device().name());
      return place_of_rank(rows, axis, ranks).reshape(shape);
    });

Two sort(const Shaped& s, const at::Tensor& self, std::optional<bool> /*stable*/, int64_t dim,
         bool descending) {
  const int64_t axis = at::maybe_wrap_dim(dim, self.dim());
  return ranked(self, axis, descending, 0, self.dim() == 0 ? 1 : self.size(axis), s.out().sizes());
}

Two topk(const Shaped& s, const at::Tensor& self, int64_t k, int64_t dim, bool largest,
         bool /*sorted*/) {
  return ranked(self, at::maybe_wrap_dim(dim, self.dim()), largest, 0, k, s.out().sizes());
}

struct KthValueMeta : PlacesMeta {
  void meta(const at::Tensor& self, int64_t k, int64_t dim, bool keepdim) {
    dim = at::maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/true);
    const int64_t size = self.dim() > 0 ? self.size(dim) : 1;
    TORCH_CHECK_INDEX(self.numel() > 0 || (size != 0 && self.dim() > 0),
                      "kthvalue(): Expected reduction dim ", dim, " to have non-zero size.");
    TORCH_CHECK(k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ",
                dim);
    const at::Tensor& values = maybe_get_output(0);
    if (values.defined()) at::assert_no_overlap(self, values);
    set_reduced(self, dim, keepdim);
  }
};
Two kthvalue(const Shaped& s, const at::Tensor& self, int64_t k, int64_t dim, bool /*keepdim*/) {
  const int64_t axis = at::maybe_wrap_dim(dim, self.dim());
  return values_and_places<kOfRank>(handle(self), axis, ints(s.out().sizes()),
                                    values_of_order(self.dim() == 0 ? 1 : self.size(axis)), k - 1);
}

// ----------------------------------------------------------------------------------- what is there

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// How long runs are that begin at these places.
at::Tensor lengths_of(const std::vector<int64_t>& firsts, int64_t size) {
  std::vector<int64_t> lengths;
  lengths.reserve(firsts.size());
  for (size_t k = 0; k < firsts.size(); k++) {
    lengths.push_back((k + 1 < firsts.size() ? firsts[k + 1] : size) - firsts[k]);
  }
  const auto count = int64_t(lengths.size());
  return give(weft::Tensor::from<int64_t>(lengths, {count}, weft_device().name()), c10::kLong);
}

// Runs of equal elements of a vector: the first of each, which run every element is in, and how
// long they are. How many there are is read.
Three runs(weft::Tensor values, const std::optional<weft::Tensor>& sorted_from,
           const at::Tensor& self, bool return_inverse, bool return_counts) {
  at::Tensor inverse = empty({0}, c10::kLong), counts = empty({0}, c10::kLong);
  const int64_t size = values.numel();
  if (size == 0) {
    if (return_inverse) inverse = empty(self.sizes(), c10::kLong);
    return {empty({0}, self.scalar_type()), inverse, counts};
  }
  const weft::Tensor place =
      weft::Tensor::arange(int64_t(0), size, int64_t(1), dtypes::int64, values.device());
  const int64_t one[] = {1};
  weft::Tensor is_first = place.eq(int64_t(0)).bitwise_or(values.ne(values.roll(Ints(one))));
  weft::Tensor* const both[] = {&values, &is_first};
  weft::Tensor::realize(both);
  const std::vector<int64_t> firsts = true_places(is_first)[0];
  const auto count = int64_t(firsts.size());
  const weft::Tensor at = weft::Tensor::from<int64_t>(firsts, {count}, values.device());
  const at::Tensor result = give(values.at({Index(ByTensor(at))}), self.scalar_type());
  if (return_inverse) {
    weft::Tensor run = is_first.cast(dtypes::int64).cumsum(0).sub(int64_t(1));
    if (sorted_from) run = run.scatter(0, *sorted_from, run);
    inverse = give(run.reshape(ints(self.sizes())), c10::kLong);
  }
  if (return_counts) {
    counts = lengths_of(firsts, size);
  }
  return {result, inverse, counts};
}

Three unique2(const at::Tensor& self, bool /*sorted*/, bool return_inverse, bool return_counts) {
  if (self.numel() == 0) {
    return runs(handle(self).reshape({-1}), {}, self, return_inverse, return_counts);
  }
  auto [values, places] = handle(self).reshape({-1}).sort(0);
  if (return_inverse) places.realize();
  return runs(values, places, self, return_inverse, return_counts);
}

std::tuple<at::Tensor, at::Tensor> unique(const at::Tensor& self, bool sorted,
                                          bool return_inverse) {
  auto [values, inverse, counts] = unique2(self, sorted, return_inverse, false);
  return {values, inverse};
}

// Rows of a matrix: which place each has in their order.
weft::Tensor ranks_of(const weft::Tensor& rows) {
  const int64_t count = rows.shape()[0], width = rows.shape()[1];
  const weft::Tensor own = rows.unsqueeze(1), other = rows.unsqueeze(0);  // (n, 1, m), (1, n, m)
  const weft::Tensor column = positions(weft_device(), width, 2, 3);
  const Axes last = std::vector<int64_t>{-1};
  const weft::Tensor first = weft::Tensor::where(own.ne(other), column, width).min(last);
  const weft::Tensor row = positions(weft_device(), count, 0, 2);
  const weft::Tensor from = positions(weft_device(), count, 1, 2);
  const weft::Tensor differ = first.lt(width), at = first.minimum(width - 1);
  const weft::Tensor flat = rows.reshape({-1});
  const weft::Tensor a = flat.take(row.mul(width).add(at));
  const weft::Tensor b = flat.take(from.mul(width).add(at));
  const weft::Tensor is_before = weft::Tensor::where(differ, b.lt(a), from.lt(row));
  return is_before.sum(last, false, dtypes::int64);
}

// Runs of equal slices along an axis; in their order where they are sorted.
Three unique_slices(const at::Tensor& self, int64_t dim, bool is_sorted, bool return_inverse,
                    bool return_counts) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  at::Tensor inverse = empty({0}, c10::kLong), counts = empty({0}, c10::kLong);
  if (self.numel() == 0) {
    TORCH_CHECK(self.dim() == 0 || self.size(dim) == 0,
                "There are 0 sized dimensions, and they aren't selected, so unique cannot be "
                "applied");
    return {empty(self.sizes(), self.scalar_type()), inverse, counts};
  }
  const int64_t count = self.size(dim);
  const int64_t from[] = {dim}, to[] = {0};
  weft::Tensor rows = handle(self).movedim(Ints(from), Ints(to)).reshape({count, -1});
  const weft::Tensor place =
      weft::Tensor::arange(int64_t(0), count, int64_t(1), dtypes::int64, rows.device());
  weft::Tensor order = place;
  if (is_sorted) {
    order = place.scatter(0, ranks_of(rows), place);
    order.realize();
    rows = rows.index_select(0, order);
  }
  const int64_t one[] = {1};
  const weft::Tensor before = rows.roll(Ints(one), std::vector<int64_t>{0});
  weft::Tensor is_first =
      place.eq(int64_t(0)).bitwise_or(rows.ne(before).any(std::vector<int64_t>{1}));
  is_first.realize();
  const std::vector<int64_t> firsts = true_places(is_first)[0];
  const auto found = int64_t(firsts.size());
  const weft::Tensor at = weft::Tensor::from<int64_t>(firsts, {found}, rows.device());
  const at::Tensor result =
      give(handle(self).index_select(dim, order.take(at)), self.scalar_type());
  if (return_inverse) {
    weft::Tensor run = is_first.cast(dtypes::int64).cumsum(0).sub(int64_t(1));
    inverse = give(is_sorted ? run.scatter(0, order, run) : run, c10::kLong);
  }
  if (return_counts) counts = lengths_of(firsts, count);
  return {result, inverse, counts};
}

Three unique_dim(const at::Tensor& self, int64_t dim, bool /*sorted*/, bool return_inverse,
                 bool return_counts) {
  return unique_slices(self, dim, true, return_inverse, return_counts);
}
Three unique_dim_consecutive(const at::Tensor& self, int64_t dim, bool return_inverse,
                             bool return_counts) {
  return unique_slices(self, dim, false, return_inverse, return_counts);
}

Three unique_consecutive(const at::Tensor& self, bool return_inverse, bool return_counts,
                         std::optional<int64_t> dim) {
  if (dim && !(self.dim() == 1 && *dim == 0)) {
    return unique_dim_consecutive(self, *dim, return_inverse, return_counts);
  }
  return runs(handle(self).reshape({-1}), {}, self, return_inverse, return_counts);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  structured<at::meta::structured_sort_stable, sort, at::_ops::sort_stable,
             at::_ops::sort_values_stable>(m);
  structured<at::meta::structured_topk, topk, at::_ops::topk, at::_ops::topk_values>(m);
  structured<KthValueMeta, kthvalue, at::_ops::kthvalue, at::_ops::kthvalue_values>(m);
  native<at::_ops::_unique2, unique2>(m);
  native<at::_ops::_unique, unique>(m);
  native<at::_ops::unique_consecutive, unique_consecutive>(m);
  native<at::_ops::unique_dim, unique_dim>(m);
  native<at::_ops::unique_dim_consecutive, unique_dim_consecutive>(m);
}

}  // namespace
}  // namespace weft::pytorch
