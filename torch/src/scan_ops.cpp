// Cumulative reductions along an axis.
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/cumprod_meta.h>
#include <ATen/ops/cumsum_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "base/ref.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/calls.h"
#include "value/value.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

template <auto method>
weft::Tensor scan(const Shaped& s, const at::Tensor& self, int64_t dim,
                  std::optional<at::ScalarType>) {
  at::assert_no_partial_overlap(s.out(), self);
  return (operand(self, s.out().scalar_type()).*method)(dim);
}

// The best so far and its last place: a call each.
struct Best {
  Ref<Value> value, place;
};
std::pair<weft::Tensor, weft::Tensor> best_of(Op op, int64_t dim, const weft::Tensor& x) {
  return op == Op::MAX ? x.cummax(dim) : x.cummin(dim);
}
// PyTorch does not look at the axis of a tensor without elements.
int64_t axis_of(const at::Tensor& self, int64_t dim, const char* name) {
  if (self.dim() == 0) {
    TORCH_CHECK_INDEX(dim == 0 || dim == -1, name,
                      "(): Expected reduction dim -1 or 0 for scalar but got ", dim);
    return 0;
  }
  const bool is_wrong = dim < -self.dim() || dim >= self.dim();
  return self.numel() == 0 && is_wrong ? 0 : at::maybe_wrap_dim(dim, self.dim());
}

constexpr auto kBest = row("cumulative_best", [](Op op, int64_t dim, const weft::Tensor& x) {
  return best_of(op, dim, x).first;
});
constexpr auto kPlaceOfBest =
    row("place_of_cumulative_best",
        [](Op op, int64_t dim, const weft::Tensor& x) { return best_of(op, dim, x).second; });
Best best_so_far(Op op, const at::Tensor& self, int64_t dim) {
  const Ref<Value> x = value_of(self);
  return {call<kBest>({x->dtype(), x->shape()}, op, dim, x),
          call<kPlaceOfBest>({dtypes::int64, x->shape()}, op, dim, x)};
}
constexpr char kCummax[] = "cummax", kCummin[] = "cummin";  // NOLINT: arguments of templates

template <Op op, const char* name>
std::tuple<at::Tensor, at::Tensor> cumulative(const at::Tensor& self, int64_t dim) {
  const int64_t axis = axis_of(self, dim, name);
  Best best = best_so_far(op, self, axis);
  return {give(std::move(best.value), self.scalar_type()), give(std::move(best.place), at::kLong)};
}
// In tensors that have the operand's shape.
template <Op op>
void cumulative_in(const at::Tensor& self, at::Tensor& values, at::Tensor& places, int64_t dim) {
  Best best = best_so_far(op, self, at::maybe_wrap_dim(dim, self.dim()));
  check_sizes("the values", values, self.sizes());
  check_sizes("the indices", places, self.sizes());
  TORCH_CHECK(values.scalar_type() == self.scalar_type() && places.scalar_type() == at::kLong,
              "expected values of ", self.scalar_type(), " and indices of Long, got ",
              values.scalar_type(), " and ", places.scalar_type());
  put(values, std::move(best.value));
  put(places, std::move(best.place));
}

struct SameMeta : at::impl::MetaBase {
  void meta(const at::Tensor& self, int64_t dim) {
    at::maybe_wrap_dim(dim, self.dim());
    set_output_raw_strided(0, self.sizes(), {}, self.options());
  }
};
weft::Tensor logcumsumexp(const Shaped&, const at::Tensor& self, int64_t dim) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(self.scalar_type()),
                              "\"logcumsumexp_out_cpu\" not implemented for '", self.scalar_type(),
                              "'");
  return operand(self).logcumsumexp(dim);
}

// NOLINTBEGIN: PyTorch's macros
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<at::meta::structured_cumsum, scan<&weft::Tensor::cumsum>, at::_ops::cumsum,
             at::_ops::cumsum_, at::_ops::cumsum_out>(m);
  structured<at::meta::structured_cumprod, scan<&weft::Tensor::cumprod>, at::_ops::cumprod,
             at::_ops::cumprod_, at::_ops::cumprod_out>(m);
  native<at::_ops::cummax, cumulative<Op::MAX, kCummax>>(m);
  native<at::_ops::cummin, cumulative<Op::MIN, kCummin>>(m);
  native<at::_ops::_cummax_helper, cumulative_in<Op::MAX>>(m);
  native<at::_ops::_cummin_helper, cumulative_in<Op::MIN>>(m);
  structured<SameMeta, logcumsumexp, at::_ops::_logcumsumexp, at::_ops::_logcumsumexp_out>(m);
}
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
