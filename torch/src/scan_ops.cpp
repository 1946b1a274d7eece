// Cumulative reductions along an axis.
#include <cstdint>
#include <optional>

#include <ATen/ops/cumprod_meta.h>
#include <ATen/ops/cumsum_meta.h>
#include <torch/library.h>

#include "native.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

template <auto method>
weft::Tensor scan(const Shaped& s, const at::Tensor& self, int64_t dim,
                  std::optional<at::ScalarType>) {
  return (operand(self, s.out().scalar_type()).*method)(dim);
}

// The best so far and its last place, in tensors that have the operand's shape.
template <auto method>
void best_so_far(const at::Tensor& self, at::Tensor& values, at::Tensor& places, int64_t dim) {
  if (self.numel() == 0) return;
  const auto [best, place] = (operand(self).*method)(dim);
  put(values, best);
  put(places, place);
}

struct SameMeta : at::impl::MetaBase {
  void meta(const at::Tensor& self, int64_t dim) {
    at::maybe_wrap_dim(dim, self.dim());
    set_output_raw_strided(0, self.sizes(), {}, self.options());
  }
};
weft::Tensor logcumsumexp(const Shaped&, const at::Tensor& self, int64_t dim) {
  return operand(self).logcumsumexp(dim);
}

// NOLINTBEGIN: PyTorch's macros
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<at::meta::structured_cumsum, scan<&weft::Tensor::cumsum>, at::_ops::cumsum,
             at::_ops::cumsum_, at::_ops::cumsum_out>(m);
  structured<at::meta::structured_cumprod, scan<&weft::Tensor::cumprod>, at::_ops::cumprod,
             at::_ops::cumprod_, at::_ops::cumprod_out>(m);
  native<at::_ops::_cummax_helper, best_so_far<&weft::Tensor::cummax>>(m);
  native<at::_ops::_cummin_helper, best_so_far<&weft::Tensor::cummin>>(m);
  structured<SameMeta, logcumsumexp, at::_ops::_logcumsumexp, at::_ops::_logcumsumexp_out>(m);
}
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
