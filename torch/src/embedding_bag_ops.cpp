// Bags of rows of a table: sums, means or the largest of the rows that a bag names.
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/library.h>

#include "formulas.h"
#include "ir/op.h"
#include "native.h"
#include "one_type.h"
#include "operators.h"
#include "storage.h"
#include "tensor/chosen.h"
#include "tensor/positions.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using MaybeTensor = std::optional<at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

enum Mode : int64_t { kSum, kMean, kMax };

weft::Tensor zeros(Ints shape, DType dtype) {
  return weft::Tensor::zeros(shape, dtype, weft_device().name());
}

// The rows of a table that indices name, from 0 on.
weft::Tensor rows_named(const at::Tensor& indices, int64_t count) {
  return as_classes("embedding_bag", operand(indices), 0, count);
}

// The bag of each index: how many bags begin at it or before, less one.
weft::Tensor bags_of(const at::Tensor& offsets, int64_t indices, int64_t bags) {
  const weft::Tensor begins = operand(offsets).cast(dtypes::int64).shrink({{0, bags}});
  const weft::Tensor at = positions(weft_device(), indices).cast(dtypes::int64).unsqueeze(1);
  return at.ge(begins).cast(dtypes::int64).sum(std::vector<int64_t>{1}).sub(int64_t(1));
}

// 1 for the indices that count, 0 for those that are padding.
weft::Tensor counted(const weft::Tensor& index, int64_t padding, DType dtype) {
  return index.ne(padding).cast(dtype);
}

void check_bag(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets) {
  TORCH_CHECK(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ",
              weight.dim());
  TORCH_CHECK(indices.dim() == 1, "input has to be a 1D Tensor, but got Tensor of dimension ",
              indices.dim());
  TORCH_CHECK(offsets.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ",
              offsets.dim());
}

Four embedding_bag(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                   bool, int64_t mode, bool, const MaybeTensor& sample_weights,
                   bool include_last_offset, int64_t padding) {
  check_bag(weight, indices, offsets);
  TORCH_CHECK(mode == kSum || !is_given(sample_weights),
              "embedding_bag: per_sample_weights only supported with mode='sum'");
  TORCH_CHECK(!include_last_offset || offsets.size(0) >= 1,
              "include_last_offset: number of offset should be at least 1");
  const int64_t count = indices.numel(), size = weight.size(1);
  const int64_t bags = offsets.size(0) - (include_last_offset ? 1 : 0);
  const c10::ScalarType type = weight.scalar_type(), of_index = indices.scalar_type();
  const auto zeroed = [](c10::IntArrayRef sizes, c10::ScalarType t) {
    at::Tensor result = empty(sizes, t);
    if (result.numel() != 0) put(result, number(0, t));
    return result;
  };
  if (count == 0 || bags == 0 || size == 0) {
    return {zeroed({bags, size}, type), zeroed({count}, of_index), zeroed({bags}, of_index),
            mode == kMax ? zeroed({bags, size}, of_index) : zeroed({0}, of_index)};
  }
  const weft::Tensor index = rows_named(indices, weight.size(0));
  const weft::Tensor bag = bags_of(offsets, count, bags);
  weft::Tensor rows = wide_operand(weight).index_select(0, index);
  const weft::Tensor counts = counted(index, padding, rows.dtype());
  const weft::Tensor sizes = zeros({bags}, rows.dtype()).index_add(0, bag, counts);
  at::Tensor places = zeroed({mode == kMax ? bags : 0, size}, of_index);
  weft::Tensor y = zeros({bags, size}, rows.dtype());
  if (mode == kMax) {
    const weft::Tensor is_row = counts.gt(0.0).unsqueeze(1);
    const double least = -std::numeric_limits<double>::infinity();
    const weft::Tensor seen = weft::Tensor::where(is_row, rows, least);
    const weft::Tensor to = bag.unsqueeze(1).expand({count, size});
    const weft::Tensor largest = y.add(least).scatter(0, to, seen, Op::MAX);
    // The first index of the bag that is as large.
    const weft::Tensor is_largest = seen.eq(largest.index_select(0, bag)).bitwise_and(is_row);
    const weft::Tensor at = positions(weft_device(), count).cast(dtypes::int64).unsqueeze(1);
    const weft::Tensor first =
        zeros({bags, size}, dtypes::int64)
            .add(count)
            .scatter(0, to, weft::Tensor::where(is_largest, at, count), Op::MIN);
    const weft::Tensor is_empty = sizes.eq(0.0).unsqueeze(1);
    y = weft::Tensor::where(is_empty, 0.0, largest);
    const weft::Tensor named = index.cast(dtypes::int64).take(first.minimum(count - 1));
    put(places, weft::Tensor::where(is_empty, int64_t(0), named));
  } else {
    rows = rows.mul(counts.unsqueeze(1));
    if (is_given(sample_weights)) {
      rows = rows.mul(wide_operand(*sample_weights).cast(rows.dtype()).unsqueeze(1));
    }
    y = y.index_add(0, bag, rows);
    if (mode == kMean) y = y.div(sizes.maximum(1.0).unsqueeze(1));
  }
  return {give(std::move(y), type), give(bag, of_index), give(sizes, of_index),
          mode == kMax ? std::move(places) : zeroed({0}, of_index)};
}

at::Tensor bag_backward(const at::Tensor& gradient, const at::Tensor& indices,
                        const at::Tensor& offset2bag, const at::Tensor& bag_size,
                        const at::Tensor& maximum_indices, int64_t rows, bool by_frequency,
                        int64_t mode, const MaybeTensor& sample_weights, int64_t padding) {
  TORCH_CHECK(gradient.dim() == 2, "expected a gradient of rows, got ", gradient.sizes());
  TORCH_CHECK(mode == kSum || !is_given(sample_weights),
              "embedding_bag: per_sample_weights only supported with mode='sum'");
  const int64_t size = gradient.size(1), count = indices.numel();
  at::Tensor result = empty({rows, size}, gradient.scalar_type());
  if (result.numel() == 0) return result;
  if (count == 0 || gradient.numel() == 0) {
    put(result, number(0, gradient.scalar_type()));
    return result;
  }
  weft::Tensor g = wide_operand(gradient);
  const weft::Tensor sizes = operand(bag_size).cast(g.dtype());
  if (mode == kMax) {
    g = weft::Tensor::where(sizes.eq(0.0).unsqueeze(1), 0.0, g);
    const weft::Tensor largest = rows_named(maximum_indices, rows);
    put(result, zeros({rows, size}, g.dtype()).scatter(0, largest, g, Op::ADD));
    return result;
  }
  const weft::Tensor index = rows_named(indices, rows), bag = operand(offset2bag);
  if (mode == kMean) g = g.div(sizes.maximum(1.0).unsqueeze(1));
  weft::Tensor scale = counted(index, padding, g.dtype());
  if (is_given(sample_weights)) scale = scale.mul(wide_operand(*sample_weights).cast(g.dtype()));
  if (by_frequency) {
    const weft::Tensor ones = scale.ones_like();
    scale = scale.div(zeros({rows}, g.dtype()).index_add(0, index, ones).index_select(0, index));
  }
  const weft::Tensor by = g.index_select(0, bag).mul(scale.unsqueeze(1));
  put(result, zeros({rows, size}, g.dtype()).index_add(0, index, by));
  return result;
}

at::Tensor sample_weights_backward(const at::Tensor& gradient, const at::Tensor& weight,
                                   const at::Tensor& indices, const at::Tensor& offsets,
                                   const at::Tensor& offset2bag, int64_t mode, int64_t padding) {
  TORCH_CHECK(mode == kSum, "embedding_bag_backward: per_sample_weights only supported for ",
              "mode='sum'");
  check_one_type(gradient, weight);
  at::Tensor result = empty({indices.numel()}, gradient.scalar_type());
  if (result.numel() == 0) return result;
  const weft::Tensor index = rows_named(indices, weight.size(0));
  const weft::Tensor bag = offset2bag.numel() != 0
                               ? operand(offset2bag)
                               : bags_of(offsets, indices.numel(), offsets.numel());
  const weft::Tensor rows = wide_operand(weight).index_select(0, index);
  const weft::Tensor by =
      wide_operand(gradient).index_select(0, bag).mul(rows).sum(std::vector<int64_t>{1});
  put(result, by.mul(counted(index, padding, by.dtype())));
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::_embedding_bag, embedding_bag>(m);
  native<at::_ops::_embedding_bag_forward_only, embedding_bag>(m);
  native<at::_ops::_embedding_bag_dense_backward, bag_backward>(m);
  native<at::_ops::_embedding_bag_per_sample_weights_backward, sample_weights_backward>(m);
}

}  // namespace
}  // namespace weft::pytorch
