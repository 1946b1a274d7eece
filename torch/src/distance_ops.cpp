// Distances between rows: the p-norm of their differences.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/core/DimVector.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "base/ref.h"
#include "convert.h"
#include "formulas.h"
#include "native.h"
#include "one_type.h"
#include "operators.h"
#include "storage.h"
#include "tensor/calls.h"
#include "value/value.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

Axes last_axis() { return std::vector<int64_t>{-1}; }

// Along the last axis.
weft::Tensor norm(const weft::Tensor& x, double p) {
  if (p == 2) return x.square().sum(last_axis()).sqrt();
  if (p == 1) return x.abs().sum(last_axis());
  if (p == 0) return x.ne(0.0).cast(x.dtype()).sum(last_axis());
  if (std::isinf(p)) return x.abs().max(last_axis());
  return x.abs().pow(p).sum(last_axis()).pow(1 / p);
}

// By each difference, of the gradient by its norm: both have an axis of size 1 at the end.
weft::Tensor by_difference(const weft::Tensor& x, const weft::Tensor& g, const weft::Tensor& norm,
                           double p) {
  if (p == 0) return x.zeros_like();
  if (p == 1) return g.mul(x.sign());
  if (std::isinf(p)) {
    return weft::Tensor::where(x.abs().eq(norm), g.mul(x.sign()), 0.0);
  }
  const weft::Tensor is_zero = norm.eq(0.0);
  const weft::Tensor safe = weft::Tensor::where(is_zero, 1.0, norm);
  const weft::Tensor slope =
      p == 2 ? x.div(safe) : x.sign().mul(x.abs().pow(p - 1)).div(safe.pow(p - 1));
  const weft::Tensor none = p < 1 ? is_zero.bitwise_or(x.eq(0.0)) : is_zero;
  return weft::Tensor::where(none, 0.0, g.mul(slope));
}

// (..., rows, 1, size) and (..., 1, rows, size)
weft::Tensor differences(const weft::Tensor& a, const weft::Tensor& b) {
  return a.unsqueeze(-2).sub(b.unsqueeze(-3));
}

// Sizes of batches of rows, and of two axes that follow.
at::DimVector sizes_of_rows(const at::Tensor& a, const at::Tensor& b, int64_t rows, int64_t last) {
  const auto batch = [](const at::Tensor& x) { return x.sizes().slice(0, size_t(x.dim()) - 2); };
  at::DimVector sizes = at::infer_size_dimvector(batch(a), batch(b));
  sizes.push_back(rows);
  sizes.push_back(last);
  return sizes;
}

constexpr auto kDistances =
    row("cdist", [](double p, const weft::Tensor& a, const weft::Tensor& b) {
      return norm(differences(a, b), p);
    });

at::Tensor cdist(const at::Tensor& a, const at::Tensor& b, double p,
                 std::optional<int64_t> compute_mode) {
  const int64_t mode = compute_mode.value_or(0);
  TORCH_CHECK(mode >= 0 && mode <= 2, "possible modes: 0, 1, 2, but was: ", mode);
  TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
  const at::DimVector sizes = sizes_of_rows(a, b, a.size(-2), b.size(-2));
  TORCH_CHECK(a.size(-1) == b.size(-1),
              "X1 and X2 must have the same number of columns. X1: ", a.size(-1),
              " X2: ", b.size(-1));
  if (a.size(-1) == 0 || c10::multiply_integers(sizes) == 0) {
    at::Tensor result = empty(sizes, a.scalar_type());
    put(result, number(0, a.scalar_type()));
    return result;
  }
  const Ref<Value> x = wide_value(a), y = wide_value(b);
  return give(call<kDistances>({wider(x->dtype(), y->dtype()), ints(sizes)}, p, x, y),
              a.scalar_type());
}

at::Tensor cdist_backward(const at::Tensor& gradient, const at::Tensor& a, const at::Tensor& b,
                          double p, const at::Tensor& distances) {
  at::Tensor result = empty(sizes_of_rows(a, b, a.size(-2), a.size(-1)), a.scalar_type());
  TORCH_CHECK(a.size(-1) == b.size(-1),
              "X1 and X2 must have the same number of columns. X1: ", a.size(-1),
              " X2: ", b.size(-1));
  if (result.numel() == 0) return result;
  if (gradient.numel() == 0) {
    put(result, number(0, a.scalar_type()));
    return result;
  }
  const weft::Tensor by =
      by_difference(differences(wide_operand(a), wide_operand(b)),
                    wide_operand(gradient).unsqueeze(-1), wide_operand(distances).unsqueeze(-1), p);
  put(result, by.sum(std::vector<int64_t>{-2}));
  return result;
}

// ---- of every row to every later one

struct Pairs {
  weft::Tensor first, second;

  explicit Pairs(int64_t rows) : first(indices(rows, true)), second(indices(rows, false)) {}

  static weft::Tensor indices(int64_t rows, bool is_first) {
    std::vector<int32_t> list;
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t j = i + 1; j < rows; j++) list.push_back(int32_t(is_first ? i : j));
    }
    return weft::Tensor::from(std::span<const int32_t>(list), {int64_t(list.size())},
                              weft_device().name());
  }
  weft::Tensor differences(const weft::Tensor& x) const {
    return x.index_select(0, first).sub(x.index_select(0, second));
  }
};

at::Tensor pdist(const at::Tensor& self, double p) {
  TORCH_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  TORCH_CHECK(p >= 0, "pdist only supports non-negative p values");
  const int64_t n = self.size(0);
  at::Tensor result = empty({n <= 1 ? 0 : n * (n - 1) / 2}, self.scalar_type());
  if (result.numel() == 0) return result;
  put(result, self.size(1) == 0 ? number(0, self.scalar_type())
                                : norm(Pairs(n).differences(wide_operand(self)), p));
  return result;
}

at::Tensor pdist_backward(const at::Tensor& gradient, const at::Tensor& self, double p,
                          const at::Tensor& distances) {
  check_one_type(self, gradient);
  check_one_type(self, distances);
  at::Tensor result = empty(self.sizes(), self.scalar_type());
  if (result.numel() == 0) return result;
  if (distances.numel() == 0) {
    put(result, number(0, self.scalar_type()));
    return result;
  }
  const Pairs pairs(self.size(0));
  const weft::Tensor x = wide_operand(self);
  const weft::Tensor by = by_difference(pairs.differences(x), wide_operand(gradient).unsqueeze(-1),
                                        wide_operand(distances).unsqueeze(-1), p);
  put(result, x.zeros_like().index_add(0, pairs.first, by).index_add(0, pairs.second, by.neg()));
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::_cdist_forward, cdist>(m);
  native<at::_ops::_cdist_backward, cdist_backward>(m);
  native<at::_ops::_pdist_forward, pdist>(m);
  native<at::_ops::_pdist_backward, pdist_backward>(m);
}

}  // namespace
}  // namespace weft::pytorch
