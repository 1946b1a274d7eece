// Rows of a table that indices name.
#include <cmath>
#include <cstdint>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/library.h>

#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "tensor/chosen.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

// The rows of a table that indices name, from 0 on: a negative one is out of range, as one past the
// last is.
weft::Tensor rows_named(const at::Tensor& indices, int64_t count) {
  return as_classes("embedding", operand(indices), 0, count).flatten();
}

void check_indices(const at::Tensor& indices) {
  TORCH_CHECK(indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt,
              "Expected tensor for argument #1 'indices' to have one of the following scalar ",
              "types: Long, Int; but got ", indices.toString(),
              " instead (while checking arguments for embedding)");
}

at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices, int64_t, bool, bool) {
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_indices(indices);
  std::vector<int64_t> sizes = list_of(indices.sizes());
  sizes.push_back(weight.size(1));
  at::Tensor result = empty(sizes, weight.scalar_type());
  if (result.numel() == 0) return result;
  const weft::Tensor index = rows_named(indices, weight.size(0));
  put(result, operand(weight).index_select(0, index).reshape(sizes));
  return result;
}

// How often each row was named.
weft::Tensor counts_of(const weft::Tensor& index, int64_t rows, DType type) {
  const weft::Tensor ones = weft::Tensor::full({index.numel()}, 1.0, type, index.device());
  return weft::Tensor::zeros({rows}, type, index.device()).index_add(0, index, ones);
}

at::Tensor embedding_backward(const at::Tensor& gradient, const at::Tensor& indices, int64_t rows,
                              int64_t padding, bool scale_by_frequency) {
  check_indices(indices);
  const int64_t columns = gradient.size(-1);
  at::Tensor result = empty({rows, columns}, gradient.scalar_type());
  if (result.numel() == 0) return result;
  if (indices.numel() == 0) {
    put(result, number(0, gradient.scalar_type()));
    return result;
  }
  const weft::Tensor index = rows_named(indices, rows);
  weft::Tensor g = wide_operand(gradient).reshape({index.numel(), columns});
  if (scale_by_frequency) {
    const weft::Tensor counts = counts_of(index, rows, g.dtype());
    g = g.div(counts.index_select(0, index).unsqueeze(1));
  }
  if (padding >= 0) g = weft::Tensor::where(index.ne(padding).unsqueeze(1), g, 0.0);
  put(result, weft::Tensor::zeros({rows, columns}, g.dtype(), g.device()).index_add(0, index, g));
  return result;
}

// Rows that are named and longer than the norm allowed are made as long as it.
at::Tensor& renorm(at::Tensor& self, const at::Tensor& indices, double max_norm, double norm_type) {
  TORCH_CHECK(self.dim() == 2, "embedding_renorm_: expected a 2D tensor");
  check_indices(indices);
  if (self.numel() == 0 || indices.numel() == 0) return self;
  const weft::Tensor x = wide_operand(self), index = rows_named(indices, self.size(0));
  const std::vector<int64_t> last{1};
  const weft::Tensor size = x.abs();
  const weft::Tensor norm = norm_type == 2   ? x.square().sum(last, true).sqrt()
                            : norm_type == 1 ? size.sum(last, true)
                            : std::isinf(norm_type)
                                ? size.max(last, true)
                                : size.pow(norm_type).sum(last, true).pow(1 / norm_type);
  const weft::Tensor is_named = counts_of(index, self.size(0), x.dtype()).gt(0.0).unsqueeze(1);
  const weft::Tensor scale = norm.add(1e-7).reciprocal().mul(max_norm);
  const weft::Tensor shrinks = is_named.bitwise_and(norm.gt(max_norm));
  put(self, weft::Tensor::where(shrinks, x.mul(scale), x));
  return self;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::embedding, embedding>(m);
  native<at::_ops::embedding_dense_backward, embedding_backward>(m);
  native<at::_ops::embedding_renorm_, renorm>(m);
}

}  // namespace
}  // namespace weft::pytorch
