// Reductions by one operation: sums, products, extremes, truth, norms.
#include <cmath>
#include <cstdint>
#include <optional>

#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/all_meta.h>
#include <ATen/ops/amax_meta.h>
#include <ATen/ops/amin_meta.h>
#include <ATen/ops/any_meta.h>
#include <ATen/ops/linalg_vector_norm_meta.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/norm_meta.h>
#include <ATen/ops/prod_meta.h>
#include <ATen/ops/sum_meta.h>
#include <torch/library.h>

#include "complex.h"
#include "complex_kernels.h"
#include "convert.h"
#include "elementwise.h"
#include "ir/op.h"
#include "native.h"
#include "operators.h"
#include "reductions.h"
#include "storage.h"
#include "structured.h"
#include "tensor/calls.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using Type = std::optional<at::ScalarType>;

c10::ScalarType type_of(const Shaped& s) { return s.out().scalar_type(); }

// ---- sums and products, in the dtype of the output

weft::Tensor sum(const Shaped& s, const at::Tensor& self, at::OptionalIntArrayRef dims,
                 bool keepdim, Type) {
  return operand(self, type_of(s)).sum(axes_of(self, dims), keepdim, dtype_of(type_of(s)));
}
at::Tensor sum_of_all(const at::Tensor& self, Type type) {
  using Form = FunctionalForm<at::meta::structured_sum_dim_IntList, sum, at::_ops::sum_dim_IntList>;
  return Form::call(self, at::IntArrayRef(), false, type);
}

struct NanSumMeta : at::impl::MetaBase {
  void meta(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim, Type type) {
    const at::Tensor& out = maybe_get_output();
    if (!type && out.defined()) type = out.scalar_type();
    at::meta::resize_reduction(*this, self, dims, keepdim, sum_type(self, type));
  }
};
weft::Tensor nansum(const Shaped& s, const at::Tensor& self, at::OptionalIntArrayRef dims,
                    bool keepdim, Type) {
  const weft::Tensor x = operand(self, type_of(s));
  const weft::Tensor kept = x.dtype().is_float() ? weft::Tensor::where(x.isnan(), 0.0, x) : x;
  return kept.sum(axes_of(self, dims), keepdim, x.dtype());
}

weft::Tensor mean(const Shaped& s, const at::Tensor& self, at::OptionalIntArrayRef dims,
                  bool keepdim, Type) {
  return operand(self, type_of(s)).mean(axes_of(self, dims), keepdim);
}
at::Tensor mean_of_all(const at::Tensor& self, Type type) {
  using Form = FunctionalForm<at::meta::structured_mean_dim, mean, at::_ops::mean_dim>;
  return Form::call(self, at::IntArrayRef(), false, type);
}

weft::Tensor prod(const Shaped& s, const at::Tensor& self, int64_t dim, bool keepdim, Type) {
  return operand(self, type_of(s)).prod(axis_of(self, dim), keepdim, dtype_of(type_of(s)));
}
at::Tensor prod_of_all(const at::Tensor& self, Type given) {
  const auto type = sum_type(self, given);
  return give(operand(self, type).prod({}, false, dtype_of(type)), type);
}

struct CountMeta : at::impl::MetaBase {
  void meta(const at::Tensor& self, at::IntArrayRef dims) {
    at::meta::resize_reduction(*this, self, dims, false, at::kLong);
  }
};
weft::Tensor count_nonzero(const Shaped&, const at::Tensor& self, at::IntArrayRef dims) {
  const weft::Tensor is_counted = operand(self).cast(dtypes::bool_);
  return is_counted.cast(dtypes::int64).sum(axes_of(self, dims), false, dtypes::int64);
}
using Count = FunctionalForm<CountMeta, count_nonzero, at::_ops::count_nonzero_dim_IntList>;
at::Tensor count_nonzero_along(const at::Tensor& self, std::optional<int64_t> dim) {
  return Count::call(self, dim ? at::IntArrayRef(*dim) : at::IntArrayRef());
}

// ---- extremes and truth

template <Op op>
weft::Tensor extreme(const Shaped&, const at::Tensor& self, at::IntArrayRef dims, bool keepdim) {
  const weft::Tensor x = operand(self);
  const Op of_bools = op == Op::MAX ? Op::OR : Op::AND;
  return x.reduce(x.dtype().is_bool() ? of_bools : op, axes_of(self, dims), keepdim);
}

template <auto method>
weft::Tensor truth(const Shaped&, const at::Tensor& self) {
  return (operand(self).*method)({}, false);
}
template <auto method>
weft::Tensor truth_along(const Shaped&, const at::Tensor& self, int64_t dim, bool keepdim) {
  return (operand(self).*method)(axis_of(self, dim), keepdim);
}
// An empty list is no axis here: each element is its own.
template <auto method>
weft::Tensor truth_along_all(const Shaped&, const at::Tensor& self, at::OptionalIntArrayRef dims,
                             bool keepdim) {
  if (dims && dims->empty()) return operand(self).cast(dtypes::bool_);
  return (operand(self).*method)(axes_of(self, dims), keepdim);
}

// ---- norms

weft::Tensor norm_of_sizes(const weft::Tensor& x, double p, const Axes& axes, bool keepdim) {
  if (p == 0) return x.ne(0.0).cast(x.dtype()).sum(axes, keepdim);
  if (p == 1) return x.sum(axes, keepdim);
  if (p == HUGE_VAL) return x.max(axes, keepdim);
  if (p == -HUGE_VAL) return x.min(axes, keepdim);
  return x.pow(p).sum(axes, keepdim).pow(1 / p);
}
weft::Tensor norm_of(const Shaped& s, const at::Tensor& self, double p, const Axes& axes,
                     bool keepdim) {
  const c10::ScalarType type = type_of(s);
  if (self.numel() == 0) return number(p < 0 ? HUGE_VAL : 0.0, type);
  if (self.is_complex()) {
    const Complex z = complex_of(self, c10::toComplexType(type));
    if (p == 2) return z.re.square().add(z.im.square()).sum(axes, keepdim).sqrt();
    return norm_of_sizes(size_of(z), p, axes, keepdim);
  }
  const weft::Tensor x = operand(self, computing_type(type));
  if (p == 2) return x.square().sum(axes, keepdim).sqrt();
  return norm_of_sizes(x.abs(), p, axes, keepdim);
}
weft::Tensor vector_norm(const Shaped& s, const at::Tensor& self, const at::Scalar& order,
                         at::OptionalIntArrayRef dims, bool keepdim, Type) {
  return norm_of(s, self, real_of(order), axes_of(self, dims), keepdim);
}

at::OptionalScalarRef ref(const std::optional<at::Scalar>& x) {
  return x ? at::OptionalScalarRef(&*x) : at::OptionalScalarRef();
}
struct NormMeta : at::meta::structured_norm_ScalarOpt_dim {
  void meta(const at::Tensor& self, const std::optional<at::Scalar>& p, at::IntArrayRef dims,
            bool keepdim) {
    structured_norm_ScalarOpt_dim::meta(self, ref(p), dims, keepdim);
  }
};
struct NormDtypeMeta : at::meta::structured_norm_ScalarOpt_dim_dtype {
  void meta(const at::Tensor& self, const std::optional<at::Scalar>& p, at::IntArrayRef dims,
            bool keepdim, at::ScalarType type) {
    structured_norm_ScalarOpt_dim_dtype::meta(self, ref(p), dims, keepdim, type);
  }
};
weft::Tensor norm(const Shaped& s, const at::Tensor& self, const std::optional<at::Scalar>& p,
                  at::IntArrayRef dims, bool keepdim) {
  return norm_of(s, self, p ? real_of(*p) : 2, axes_of(self, dims), keepdim);
}
weft::Tensor norm_in(const Shaped& s, const at::Tensor& self, const std::optional<at::Scalar>& p,
                     at::IntArrayRef dims, bool keepdim, at::ScalarType) {
  return norm(s, self, p, dims, keepdim);
}

struct LogSumExpMeta : at::impl::MetaBase {
  void meta(const at::Tensor& self, at::IntArrayRef dims, bool keepdim) {
    const bool is_integral = c10::isIntegralType(self.scalar_type(), true);
    const auto type =
        is_integral ? at::typeMetaToScalarType(c10::get_default_dtype()) : self.scalar_type();
    at::meta::resize_reduction(*this, self, dims, keepdim, type);
  }
};
constexpr auto kLogSumExp =
    row("logsumexp", [](const KeptAxes& axes, bool keepdim, const weft::Tensor& x) {
      return x.logsumexp(axes.of(x), keepdim);
    });
weft::Tensor logsumexp(const Shaped& s, const at::Tensor& self, at::IntArrayRef dims,
                       bool keepdim) {
  const weft::Tensor x = operand(self, type_of(s));
  if (self.numel() == 0) return x.logsumexp(axes_of(self, dims), keepdim);
  return call<kLogSumExp>({x.dtype(), ints(s.out().sizes())}, KeptAxes(self, dims), keepdim, x);
}

bool add_kernels() noexcept {
  add_complex_structured<at::meta::structured_linalg_vector_norm, vector_norm,
                         at::_ops::linalg_vector_norm, at::_ops::linalg_vector_norm_out>();
  add_complex_structured<NormMeta, norm, at::_ops::norm_ScalarOpt_dim, at::_ops::norm_out>();
  add_complex_structured<NormDtypeMeta, norm_in, at::_ops::norm_ScalarOpt_dim_dtype,
                         at::_ops::norm_dtype_out>();
  return true;
}
const bool kAdded = add_kernels();

// NOLINTBEGIN: PyTorch's macros
#define WEFT_TRUTH(name)                                                               \
  structured<at::meta::structured_##name, truth<&weft::Tensor::name>, at::_ops::name,  \
             at::_ops::name##_all_out>(m);                                             \
  structured<at::meta::structured_##name##_dim, truth_along<&weft::Tensor::name>,      \
             at::_ops::name##_dim, at::_ops::name##_out>(m);                           \
  structured<at::meta::structured_##name##_dims, truth_along_all<&weft::Tensor::name>, \
             at::_ops::name##_dims, at::_ops::name##_dims_out>(m)
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  structured<at::meta::structured_sum_dim_IntList, sum, at::_ops::sum_dim_IntList,
             at::_ops::sum_IntList_out>(m);
  native<at::_ops::sum, sum_of_all>(m);
  structured<NanSumMeta, nansum, at::_ops::nansum, at::_ops::nansum_out>(m);
  structured<at::meta::structured_mean_dim, mean, at::_ops::mean_dim, at::_ops::mean_out>(m);
  native<at::_ops::mean, mean_of_all>(m);
  structured<at::meta::structured_prod_dim_int, prod, at::_ops::prod_dim_int,
             at::_ops::prod_int_out>(m);
  native<at::_ops::prod, prod_of_all>(m);
  native<at::_ops::count_nonzero_dim_IntList, Count::call>(m);
  native<at::_ops::count_nonzero, count_nonzero_along>(m);
  structured<at::meta::structured_amax, extreme<Op::MAX>, at::_ops::amax, at::_ops::amax_out>(m);
  structured<at::meta::structured_amin, extreme<Op::MIN>, at::_ops::amin, at::_ops::amin_out>(m);
  WEFT_TRUTH(any);
  WEFT_TRUTH(all);
  structured<at::meta::structured_linalg_vector_norm, vector_norm, at::_ops::linalg_vector_norm,
             at::_ops::linalg_vector_norm_out>(m);
  structured<NormMeta, norm, at::_ops::norm_ScalarOpt_dim, at::_ops::norm_out>(m);
  structured<NormDtypeMeta, norm_in, at::_ops::norm_ScalarOpt_dim_dtype, at::_ops::norm_dtype_out>(
      m);
  structured<LogSumExpMeta, logsumexp, at::_ops::logsumexp, at::_ops::logsumexp_out>(m);
}
#undef WEFT_TRUTH
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
