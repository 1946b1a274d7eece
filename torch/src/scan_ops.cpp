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
#include "tensor/deferred_tensor.h"
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

// The best so far and its last place, as one step each.
struct Best {
  Ref<Value> value, place;
};
template <auto method>
Best best_so_far(const at::Tensor& self, int64_t dim) {
  const Ref<Value> x = value_of(self);
  const auto best = [dim](const weft::Tensor& t) { return (t.*method)(dim).first; };
  const auto place = [dim](const weft::Tensor& t) { return (t.*method)(dim).second; };
  return {deferred_value({x->dtype(), x->shape()}, best, x),
          deferred_value({dtypes::int64, x->shape()}, place, x)};
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

constexpr char kCummax[] = "cummax", kCummin[] = "cummin";  // NOLINT: arguments of templates

template <auto method, const char* name>
std::tuple<at::Tensor, at::Tensor> cumulative(const at::Tensor& self, int64_t dim) {
  const int64_t axis = axis_of(self, dim, name);
  Best best = best_so_far<method>(self, axis);
  return {give(std::move(best.value), self.scalar_type()), give(std::move(best.place), at::kLong)};
}
// In tensors that have the operand's shape.
template <auto method>
void cumulative_in(const at::Tensor& self, at::Tensor& values, at::Tensor& places, int64_t dim) {
  Best best = best_so_far<method>(self, at::maybe_wrap_dim(dim, self.dim()));
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
  native<at::_ops::cummax, cumulative<&weft::Tensor::cummax, kCummax>>(m);
  native<at::_ops::cummin, cumulative<&weft::Tensor::cummin, kCummin>>(m);
  native<at::_ops::_cummax_helper, cumulative_in<&weft::Tensor::cummax>>(m);
  native<at::_ops::_cummin_helper, cumulative_in<&weft::Tensor::cummin>>(m);
  structured<SameMeta, logcumsumexp, at::_ops::_logcumsumexp, at::_ops::_logcumsumexp_out>(m);
}
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
