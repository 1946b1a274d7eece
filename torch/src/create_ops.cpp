// New tensors of numbers in progression, and of the places of triangles.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/native/RangeUtils.h>
#include <ATen/native/Resize.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "tensor/positions.h"
#include "tensor/widest_float.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using at::Scalar;

weft::Tensor counted(int64_t size) { return positions(weft_device(), size); }

// Numbers that float32 holds with those between them: nothing is rounded.
bool is_small_integer(double x) { return std::floor(x) == x && std::abs(x) < 0x1p24; }

// start, start + step, ... `size` of them.
weft::Tensor progression(const Scalar& start, const Scalar& step, int64_t size,
                         c10::ScalarType type) {
  if (c10::isIntegralType(type, true)) {
    const weft::Tensor steps = counted(size).cast(dtypes::int64);
    const auto first = start.to<int64_t>(), by = step.to<int64_t>();
    const weft::Tensor scaled = by == 1 ? steps : steps.mul(by);
    return first == 0 ? scaled : scaled.add(first);
  }
  const double first = start.to<double>(), by = step.to<double>();
  const bool is_exact = is_small_integer(first) && is_small_integer(by) &&
                        is_small_integer(first + by * double(size));
  const DType in = is_exact ? dtypes::float32 : widest_float(weft_device());
  return counted(size).cast(in).mul(by).add(first);
}

void resize(const at::Tensor& out, int64_t size) {
  if (out.numel() == size) return;
  if (out.numel() > 0) {
    TORCH_WARN("The number of elements in the out tensor of shape ", out.sizes(), " is ",
               out.numel(), " which does not match the computed number of elements ", size,
               ". Note that this may occur as a result of rounding error. The out tensor will be "
               "resized to a tensor of shape (",
               size, ",).");
  }
  at::native::resize_output(out, {size});
}

// Values in row-major order, in whatever shape the output has.
at::Tensor& put_flat(at::Tensor& out, const weft::Tensor& values) {
  put(out, values.reshape(ints(out.sizes())));
  return out;
}

at::Tensor& arange_out(const Scalar& start, const Scalar& end, const Scalar& step,
                       at::Tensor& out) {
  const int64_t size = out.scalar_type() == c10::kLong
                           ? at::native::compute_arange_size<int64_t>(start, end, step)
                           : at::native::compute_arange_size<double>(start, end, step);
  resize(out, size);
  return size == 0 ? out : put_flat(out, progression(start, step, size, out.scalar_type()));
}

at::Tensor& range_out(const Scalar& start, const Scalar& end, const Scalar& step, at::Tensor& out) {
  const auto first = start.to<double>(), last = end.to<double>(), by = step.to<double>();
  at::native::arange_check_bounds(start, end, step);
  const auto size = int64_t(std::floor((last - first) / by)) + 1;
  if (out.numel() != size) at::native::resize_output(out, {size});
  return put_flat(out, progression(start, step, size, out.scalar_type()));
}

// `steps` numbers from start to end; the later half is counted from the end.
weft::Tensor spaced(const Scalar& start, const Scalar& end, int64_t steps, c10::ScalarType type) {
  const bool is_integral = c10::isIntegralType(type, true);
  const bool is_wide = is_integral || type == c10::kDouble;
  const DType in = is_wide ? widest_float(weft_device()) : dtypes::float32;
  const auto first = is_integral ? double(start.to<int64_t>()) : start.to<double>();
  const auto last = is_integral ? double(end.to<int64_t>()) : end.to<double>();
  const double step = is_wide ? (last - first) / double(steps - 1)
                              : double((float(last) - float(first)) / float(steps - 1));
  const weft::Tensor place = counted(steps);
  const weft::Tensor rising = place.cast(in).mul(step).add(first);
  const weft::Tensor falling = place.neg().add(steps - 1).cast(in).mul(-step).add(last);
  return weft::Tensor::where(place.lt(steps / 2), rising, falling);
}

void refuse_bools(const char* name, const at::Tensor& out) {
  TORCH_CHECK_NOT_IMPLEMENTED(out.scalar_type() != c10::kBool, '"', name,
                              "\" not implemented for 'Bool'");
}

at::Tensor& linspace_out(const Scalar& start, const Scalar& end, int64_t steps, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) at::native::resize_output(out, {steps});
  if (steps == 0) return out;
  if (steps == 1) return put_flat(out, number(start, out.scalar_type()).reshape({1}));
  refuse_bools("linspace_cpu", out);
  return put_flat(out, spaced(start, end, steps, out.scalar_type()));
}

at::Tensor& logspace_out(const Scalar& start, const Scalar& end, int64_t steps, double base,
                         at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) at::native::resize_output(out, {steps});
  if (steps == 0) return out;
  const c10::ScalarType type = out.scalar_type();
  if (steps == 1) {
    const double only = std::pow(base, start.to<double>());
    return put_flat(out, number(only, type == c10::kDouble ? type : c10::kFloat).reshape({1}));
  }
  refuse_bools("logspace_cpu", out);
  checked_number(start, type);
  checked_number(end, type);
  // Powers are rounded once: to an integer they are cut.
  const DType in = widest_float(weft_device());
  return put_flat(out, spaced(start, end, steps, type).cast(in).reverse_pow(base));
}

at::Tensor& eye_m_out(int64_t n, int64_t m, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TORCH_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  at::native::resize_output(out, {n, m});
  if (out.numel() == 0) return out;
  put(out, weft::Tensor::eye(n, m, dtype_of(out.scalar_type()), weft_device().name()));
  return out;
}
at::Tensor& eye_out(int64_t n, at::Tensor& out) { return eye_m_out(n, n, out); }

// ---------------------------------------------------------------------------- places of triangles

enum class Side : uint8_t { kLower, kUpper };

at::Tensor triangle(Side side, int64_t rows, int64_t columns, int64_t offset,
                    c10::ScalarType type) {
  TORCH_CHECK(rows >= 0, "row must be non-negative, got", rows);
  TORCH_CHECK(columns >= 0, "col must be non-negative, got", columns);
  std::vector<int64_t> row, column;
  for (int64_t i = 0; i < rows; i++) {
    const int64_t edge =
        std::clamp<int64_t>(i + offset + (side == Side::kLower ? 1 : 0), 0, columns);
    const int64_t begin = side == Side::kLower ? 0 : edge;
    const int64_t end = side == Side::kLower ? edge : columns;
    for (int64_t j = begin; j < end; j++) {
      row.push_back(i);
      column.push_back(j);
    }
  }
  const auto count = int64_t(row.size());
  row.insert(row.end(), column.begin(), column.end());
  return give(weft::Tensor::from<int64_t>(row, {2, count}, weft_device().name()), type);
}

at::Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset,
                        std::optional<c10::ScalarType> type, std::optional<c10::Layout>,
                        std::optional<c10::Device>, std::optional<bool>) {
  return triangle(Side::kLower, rows, columns, offset, type.value_or(c10::kLong));
}
at::Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset,
                        std::optional<c10::ScalarType> type, std::optional<c10::Layout>,
                        std::optional<c10::Device>, std::optional<bool>) {
  return triangle(Side::kUpper, rows, columns, offset, type.value_or(c10::kLong));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::arange_start_out, arange_out>(m);
  native<at::_ops::range_out, range_out>(m);
  native<at::_ops::linspace_out, linspace_out>(m);
  native<at::_ops::logspace_out, logspace_out>(m);
  native<at::_ops::eye_out, eye_out>(m);
  native<at::_ops::eye_m_out, eye_m_out>(m);
  native<at::_ops::tril_indices, tril_indices>(m);
  native<at::_ops::triu_indices, triu_indices>(m);
}

}  // namespace
}  // namespace weft::pytorch
