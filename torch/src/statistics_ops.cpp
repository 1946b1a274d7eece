// Variances and standard deviations.
#include <array>
#include <optional>

#include <torch/library.h>

#include "elementwise.h"
#include "operators.h"
#include "reductions.h"
#include "storage.h"
#include "structured.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using Correction = std::optional<at::Scalar>;

double value_of(const Correction& correction) { return correction ? real_of(*correction) : 1; }

template <int count>
struct SpreadMeta : at::impl::MetaBase {
  void meta(const at::Tensor& self, at::OptionalIntArrayRef dims, const Correction&, bool keepdim) {
    TORCH_CHECK(at::isFloatingType(self.scalar_type()),
                "std and var only support floating point and complex dtypes");
    const auto mask = at::native::make_dim_mask(dims, self.dim());
    const auto shape = at::native::shape_from_dim_mask(self, mask, keepdim);
    for (int i = 0; i < count; i++) set_output_raw_strided(i, shape, {}, self.options());
  }
};

template <auto method>
weft::Tensor spread(const Shaped&, const at::Tensor& self, at::OptionalIntArrayRef dims,
                    const Correction& correction, bool keepdim) {
  return (operand(self).*method)(axes_of(self, dims), keepdim, value_of(correction));
}
template <auto method>
std::array<weft::Tensor, 2> spread_and_mean(const Shaped&, const at::Tensor& self,
                                            at::OptionalIntArrayRef dims,
                                            const Correction& correction, bool keepdim) {
  auto [s, mean] = (operand(self).*method)(axes_of(self, dims), keepdim, value_of(correction));
  return {std::move(s), std::move(mean)};
}

// NOLINTBEGIN: PyTorch's macros
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<SpreadMeta<1>, spread<&weft::Tensor::var>, at::_ops::var_correction,
             at::_ops::var_correction_out>(m);
  structured<SpreadMeta<1>, spread<&weft::Tensor::std>, at::_ops::std_correction,
             at::_ops::std_correction_out>(m);
  structured<SpreadMeta<2>, spread_and_mean<&weft::Tensor::var_mean>, at::_ops::var_mean_correction,
             at::_ops::var_mean_correction_out>(m);
  structured<SpreadMeta<2>, spread_and_mean<&weft::Tensor::std_mean>, at::_ops::std_mean_correction,
             at::_ops::std_mean_correction_out>(m);
}
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
