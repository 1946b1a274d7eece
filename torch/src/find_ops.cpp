// Places of what is looked for: by masks, in sorted sequences, in bins.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/BucketizationUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/result_type_native.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "ir/op.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "tensor/calls.h"
#include "tensor/chosen.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

// ---------------------------------------------------------------------------------------- by masks

at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  TORCH_CHECK(mask.scalar_type() == c10::kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  const Sizes shape(ints(at::infer_size(self.sizes(), mask.sizes())));
  const weft::Tensor values = handle(self).expand(shape).masked_select(operand(mask).expand(shape));
  at::native::resize_output(out, {values.numel()});
  put(out, values);
  return out;
}
at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask) {
  at::Tensor out = empty({0}, self.scalar_type());
  return masked_select_out(self, mask, out);
}

// A row of places for each element that is not 0: the mask is read.
at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == c10::kLong,
              "nonzero: Expected out tensor to have scalar type Long but got ", out.scalar_type());
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  const weft::Tensor mask = handle(self).cast(dtypes::bool_);
  if (self.dim() == 0) {
    at::native::resize_output(out, {mask.item<bool>() ? 1 : 0, 0});
    return out;
  }
  const std::vector<std::vector<int64_t>> columns = true_places(mask);
  const size_t rows = columns[0].size();
  std::vector<int64_t> places;
  places.reserve(rows * columns.size());
  for (const std::vector<int64_t>& column : columns) {
    places.insert(places.end(), column.begin(), column.end());
  }
  const int64_t sizes[] = {int64_t(rows), self.dim()};
  const int64_t strides[] = {1, std::max<int64_t>(sizes[0], 1)};  // columns lie together
  if (at::native::resize_output(out, sizes)) {
    out.unsafeGetTensorImpl()->set_sizes_and_strides(at::IntArrayRef(sizes),
                                                     at::IntArrayRef(strides));
  }
  put(out, weft::Tensor::from<int64_t>(places, {self.dim(), int64_t(rows)}, weft_device().name())
               .transpose(0, 1));
  return out;
}
at::Tensor nonzero(const at::Tensor& self) {
  at::Tensor out = empty({0}, c10::kLong);
  return nonzero_out(self, out);
}

at::Tensor& nonzero_static_out(const at::Tensor& self, int64_t size, int64_t fill_value,
                               at::Tensor& out) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  TORCH_CHECK(out.scalar_type() == c10::kLong,
              "nonzero_static: Expected out tensor to have scalar type Long but got scalar type",
              out.scalar_type());
  at::native::resize_output(out, {size, self.dim()});
  if (out.numel() == 0) return out;
  if (self.numel() == 0) {
    put(out, number(fill_value, c10::kLong));
    return out;
  }
  put(out, handle(self).cast(dtypes::bool_).nonzero(size, fill_value));
  return out;
}
at::Tensor nonzero_static(const at::Tensor& self, int64_t size, int64_t fill_value) {
  at::Tensor out = empty({0}, c10::kLong);
  return nonzero_static_out(self, size, fill_value, out);
}

// ---------------------------------------------------------------------------- in sorted sequences

enum class Side : uint8_t { kLeft, kRight };

// Up to this many all are compared with.
constexpr int64_t kMostCompared = 64;

// b comes before the place of x, whose side says on which of equal elements.
weft::Tensor is_before(const weft::Tensor& b, const weft::Tensor& x, Side side) {
  return (side == Side::kLeft ? b.ge(x) : b.gt(x)).logical_not();
}

// `bounds` has one axis, or those of `values` with a last one of its own.
weft::Tensor found(const weft::Tensor& bounds, const weft::Tensor& values, Side side) {
  const int64_t size = bounds.shape().back();
  if (size <= kMostCompared) {
    const weft::Tensor wide = bounds.ndim() == 1 ? bounds : bounds.unsqueeze(-2);
    const weft::Tensor before = is_before(wide, values.unsqueeze(-1), side);
    return before.sum(std::vector<int64_t>{-1}, false, dtypes::int64);
  }
  // The place is built from its highest bit on.
  weft::Tensor place = weft::Tensor::zeros(values.shape(), dtypes::int64, values.device());
  for (auto step = int64_t(std::bit_floor(uint64_t(size))); step > 0; step /= 2) {
    const weft::Tensor next = place.add(step);
    const weft::Tensor last = next.minimum(size).sub(int64_t(1)).maximum(int64_t(0));
    const weft::Tensor b = bounds.ndim() == 1 ? bounds.take(last) : bounds.gather(-1, last);
    const weft::Tensor is_past = next.le(size).bitwise_and(is_before(b, values, side));
    place = weft::Tensor::where(is_past, next, place);
  }
  return place;
}

constexpr auto kSearchSorted =
    row("searchsorted", [](Ints shape, Side to, const weft::Tensor& b, const weft::Tensor& x) {
      return found(b, x.ndim() == 0 ? x.reshape({1}) : x, to).reshape(shape);
    });

at::Tensor& searchsorted_out(const at::Tensor& sequence, const at::Tensor& self, bool out_int32,
                             bool right, std::optional<std::string_view> side,
                             const std::optional<at::Tensor>& sorter, at::Tensor& out) {
  const at::Tensor order = sorter.value_or(at::Tensor());
  at::native::searchsorted_pre_check(sequence, self, out, out_int32, right, side, order);
  at::native::resize_output(out, self.sizes());
  if (self.numel() == 0) return out;
  if (sequence.numel() == 0) {
    put(out, number(0, out.scalar_type()));
    return out;
  }
  const c10::ScalarType type = at::native::result_type(sequence, self);
  weft::Tensor bounds = operand(sequence, type);
  if (order.defined()) bounds = bounds.gather(-1, handle(order));
  const bool is_right = right || (side && *side == "right");
  const weft::Tensor values = operand(self, type);
  put(out, call<kSearchSorted>({dtypes::int64, values.shape()},
                               is_right ? Side::kRight : Side::kLeft, bounds, values));
  return out;
}

c10::ScalarType place_type(bool out_int32) { return out_int32 ? c10::kInt : c10::kLong; }

at::Tensor searchsorted(const at::Tensor& sequence, const at::Tensor& self, bool out_int32,
                        bool right, std::optional<std::string_view> side,
                        const std::optional<at::Tensor>& sorter) {
  at::Tensor out = empty({0}, place_type(out_int32));
  return searchsorted_out(sequence, self, out_int32, right, side, sorter, out);
}

// The number as a tensor: it does not promote.
at::Tensor wrapped(const at::Scalar& scalar, c10::ScalarType with) {
  const bool is_float = scalar.isFloatingPoint();
  const c10::ScalarType own = is_float             ? c10::kDouble
                              : scalar.isBoolean() ? c10::kBool
                                                   : c10::kLong;
  at::Tensor element = give(number(scalar, is_float && with != c10::kDouble ? c10::kFloat : own),
                            is_float && with != c10::kDouble ? c10::kFloat : own);
  element.unsafeGetTensorImpl()->set_wrapped_number(true);
  return element;
}

at::Tensor searchsorted_scalar(const at::Tensor& sequence, const at::Scalar& self, bool out_int32,
                               bool right, std::optional<std::string_view> side,
                               const std::optional<at::Tensor>& sorter) {
  return searchsorted(sequence, wrapped(self, sequence.scalar_type()), out_int32, right, side,
                      sorter);
}
at::Tensor& searchsorted_scalar_out(const at::Tensor& sequence, const at::Scalar& self,
                                    bool out_int32, bool right,
                                    std::optional<std::string_view> side,
                                    const std::optional<at::Tensor>& sorter, at::Tensor& out) {
  return searchsorted_out(sequence, wrapped(self, sequence.scalar_type()), out_int32, right, side,
                          sorter, out);
}

at::Tensor& bucketize_out(const at::Tensor& self, const at::Tensor& boundaries, bool out_int32,
                          bool right, at::Tensor& out) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
              boundaries.dim(), ")");
  return searchsorted_out(boundaries, self, out_int32, right, {}, {}, out);
}
at::Tensor bucketize(const at::Tensor& self, const at::Tensor& boundaries, bool out_int32,
                     bool right) {
  at::Tensor out = empty({0}, place_type(out_int32));
  return bucketize_out(self, boundaries, out_int32, right, out);
}
at::Tensor bucketize_scalar(const at::Scalar& self, const at::Tensor& boundaries, bool out_int32,
                            bool right) {
  return bucketize(wrapped(self, boundaries.scalar_type()), boundaries, out_int32, right);
}

// ------------------------------------------------------------------------------------------ in
// bins

at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights,
                    int64_t minlength) {
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  TORCH_CHECK(self.dim() == 1 && c10::isIntegralType(self.scalar_type(), false),
              "bincount only supports 1-d non-negative integral inputs.");
  const bool has_weights = weights && weights->defined();
  TORCH_CHECK(!has_weights || (weights->dim() == 1 && weights->size(0) == self.size(0)),
              "weights should be 1-d and have the same length as input");
  c10::ScalarType type = c10::kLong;
  if (has_weights) type = weights->scalar_type() == c10::kFloat ? c10::kFloat : c10::kDouble;
  if (self.numel() == 0) {
    return give(weft::Tensor::zeros({minlength}, dtypes::int64, weft_device().name()), c10::kLong);
  }
  const weft::Tensor x = handle(self).cast(dtypes::int64);
  const std::vector<int64_t> ends = weft::Tensor::stack({x.min(), x.max()}).data<int64_t>();
  TORCH_CHECK(ends[0] >= 0, "bincount only supports 1-d non-negative integral inputs.");
  const int64_t bins = std::max(ends[1] + 1, minlength);
  const weft::Tensor none = weft::Tensor::zeros({bins}, dtype_of(type), weft_device().name());
  return give(has_weights ? none.scatter(0, x, operand(*weights, type), Op::ADD)
                          : none.scatter(0, x, int64_t(1), Op::ADD),
              type);
}

at::Tensor& histc_out(const at::Tensor& self, int64_t bins, const at::Scalar& least,
                      const at::Scalar& most, at::Tensor& out) {
  TORCH_CHECK(bins > 0, "torch.histc(): bins must be > 0, but got ", bins);
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isFloatingType(self.scalar_type()),
                              "\"histogram_cpu\" not implemented for '", self.scalar_type(), "'");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "torch.histogram: input tensor and hist tensor should have the same dtype, but got "
              "input ",
              self.scalar_type(), " and hist ", out.scalar_type());
  const auto low = least.to<double>(), high = most.to<double>();
  TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histc: range of [", low, ", ", high,
              "] is not finite");
  TORCH_CHECK(low <= high, "torch.histc: max must be larger than min");
  at::native::resize_output(out, {bins});
  if (self.numel() == 0) {
    put(out, number(0, out.scalar_type()));
    return out;
  }
  const bool is_wide = self.scalar_type() == c10::kDouble;
  const c10::ScalarType in = is_wide ? c10::kDouble : c10::kFloat;
  const weft::Tensor x = operand(self, in).reshape({-1});
  weft::Tensor first = number(low, in), last = number(high, in);
  if (low == high) {  // from the smallest to the largest, or one to both sides of the only number
    const weft::Tensor smallest = x.min(), largest = x.max();
    const weft::Tensor is_one = smallest.eq(largest);
    first = weft::Tensor::where(is_one, smallest.sub(1.0), smallest);
    last = weft::Tensor::where(is_one, largest.add(1.0), largest);
  }
  const weft::Tensor is_inside = x.ge(first).bitwise_and(x.le(last));
  const weft::Tensor place =
      x.sub(first).mul(double(bins)).div(last.sub(first)).cast(dtypes::int64);
  const weft::Tensor bin = weft::Tensor::where(is_inside, place.minimum(bins - 1), bins);
  const weft::Tensor counts = weft::Tensor::zeros({bins + 1}, dtypes::int64, weft_device().name())
                                  .scatter(0, bin.maximum(int64_t(0)), int64_t(1), Op::ADD);
  put(out, counts.at({Slice{.stop = bins}}));
  return out;
}
at::Tensor histc(const at::Tensor& self, int64_t bins, const at::Scalar& least,
                 const at::Scalar& most) {
  at::Tensor out = empty({0}, self.scalar_type());
  return histc_out(self, bins, least, most, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::masked_select, masked_select>(m);
  native<at::_ops::masked_select_out, masked_select_out>(m);
  native<at::_ops::nonzero, nonzero>(m);
  native<at::_ops::nonzero_out, nonzero_out>(m);
  native<at::_ops::nonzero_static, nonzero_static>(m);
  native<at::_ops::nonzero_static_out, nonzero_static_out>(m);
  native<at::_ops::searchsorted_Tensor, searchsorted>(m);
  native<at::_ops::searchsorted_Tensor_out, searchsorted_out>(m);
  native<at::_ops::searchsorted_Scalar, searchsorted_scalar>(m);
  native<at::_ops::searchsorted_Scalar_out, searchsorted_scalar_out>(m);
  native<at::_ops::bucketize_Tensor, bucketize>(m);
  native<at::_ops::bucketize_Tensor_out, bucketize_out>(m);
  native<at::_ops::bucketize_Scalar, bucketize_scalar>(m);
  native<at::_ops::bincount, bincount>(m);
  native<at::_ops::histc, histc>(m);
  native<at::_ops::histc_out, histc_out>(m);
}

}  // namespace
}  // namespace weft::pytorch
