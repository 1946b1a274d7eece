// Tensors of formulas: identities, grids, triangles.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tensor/operand.h"
#include "tensor/positions.h"
#include "tensor/widest_float.h"
#include "value/movement.h"
#include "value/number_watch.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

Tensor positions(Device& device, int64_t size, size_t axis, size_t rank) {
  const DType type = size > INT32_MAX ? dtypes::int64 : dtypes::int32;
  Sizes shape(rank, 1);
  shape[axis] = size;
  const int64_t count[] = {size};
  return tensor_of(
      reshaped(Value::make(Op::IOTA, type, device, std::span<const int64_t>(count)), shape));
}

Tensor Tensor::eye(int64_t n, std::optional<int64_t> m, DType dtype, std::string_view device_name) {
  const int64_t columns = m.value_or(n);
  checked_numel("eye", {n, columns});
  Device& device = find_device(device_name);
  const Tensor row = positions(device, n, 0, 2), column = positions(device, columns, 1, 2);
  return row.binary(Op::CMPEQ, column).cast(dtype);
}

// Counted from the nearer end, as PyTorch does, so that both ends are exact.
Tensor Tensor::linspace(Number start, Number stop, int64_t steps, DType dtype,
                        std::string_view device) {
  checked_numel("linspace", {steps});
  if (dtype.is_bool()) throw DTypeError("[linspace] there are no numbers in bool");
  const auto real = [&](Number number) {
    const double value = std::visit([](auto v) { return double(v); }, number);
    return dtype.is_float() ? value : std::trunc(value);
  };
  const double first = real(start), last = real(stop);
  if (widest_float(find_device(device)) != dtypes::float64) {
    return linspace(start, stop, steps, dtype, ref_device().name()).to(find_device(device).name());
  }
  assume_exact({steps});
  if (steps <= 1) return full({steps}, first, dtypes::float64, device).cast(dtype);
  const double step = (last - first) / double(steps - 1);
  const Tensor place = positions(find_device(device), steps);
  const Tensor count = place.cast(dtypes::float64);
  const Tensor left = count * step + first;
  const Tensor right = (count - double(steps - 1)) * step + last;
  return where(place.binary(Op::CMPLT, steps / 2), left, right).cast(dtype);
}

// ------------------------------------------------------------------------------- like this tensor

Tensor Tensor::full_like(Number value, std::optional<DType> dtype, std::string_view device) const {
  const std::string own = this->device();
  return full(shape(), value, dtype.value_or(this->dtype()), device.empty() ? own : device);
}

Tensor Tensor::empty_like(std::optional<DType> dtype, std::string_view device) const {
  const std::string own = this->device();
  return empty(shape(), dtype.value_or(this->dtype()), device.empty() ? own : device);
}

Tensor Tensor::zeros_like(std::optional<DType> dtype, std::string_view device) const {
  return full_like(false, dtype, device);
}

Tensor Tensor::ones_like(std::optional<DType> dtype, std::string_view device) const {
  return full_like(true, dtype, device);
}

// ------------------------------------------------------------------------------ grids, triangles

std::vector<Tensor> Tensor::meshgrid(std::span<const Tensor> vectors, std::string_view indexing) {
  if (indexing != "ij" && indexing != "xy") {
    throw ShapeError(fmt::format("[meshgrid] indexing '{}'; 'ij' and 'xy' are allowed", indexing));
  }
  if (vectors.empty()) throw ShapeError("[meshgrid] there are no tensors");
  std::vector<size_t> axis_of_vector(vectors.size());
  for (size_t i = 0; i < vectors.size(); i++) axis_of_vector[i] = i;
  if (indexing == "xy" && vectors.size() > 1) std::swap(axis_of_vector[0], axis_of_vector[1]);
  Sizes grid(vectors.size());
  for (size_t i = 0; i < vectors.size(); i++) {
    check_same_device("meshgrid", vectors[0], vectors[i]);
    if (vectors[i].ndim() > 1) {
      throw ShapeError(
          fmt::format("[meshgrid] vectors are needed, not {}", text_of_shape(vectors[i].shape())));
    }
    grid[axis_of_vector[i]] = vectors[i].numel();
  }
  checked_numel("meshgrid", grid);
  std::vector<Tensor> result;
  for (size_t i = 0; i < vectors.size(); i++) {
    Sizes along(vectors.size(), 1);
    along[axis_of_vector[i]] = vectors[i].numel();
    result.push_back(vectors[i].reshape(along).expand(grid));
  }
  return result;
}

namespace {

// column - row of the last two axes.
Tensor distances(const char* what, const Tensor& x) {
  if (x.ndim() < 2) {
    throw ShapeError(
        fmt::format("[{}] a matrix is needed, not {}", what, text_of_shape(x.shape())));
  }
  const size_t rank = x.view().rank();
  Device& device = device_of(x);
  return positions(device, x.shape()[rank - 1], 1, 2) -
         positions(device, x.shape()[rank - 2], 0, 2);
}

// Past these all of a matrix is on one side.
int64_t within(const Tensor& x, int64_t diagonal) {
  const int64_t rows = x.shape().end()[-2], columns = x.shape().end()[-1];
  const int64_t most = is_less(rows, columns) ? columns : rows;
  if (is_less(diagonal, -most - 1)) return -most - 1;
  return is_less(most + 1, diagonal) ? most + 1 : diagonal;
}

}  // namespace

Tensor Tensor::tril(int64_t diagonal) const {
  const Tensor distance = distances("tril", *this);
  return where(distance.binary(Op::CMPLT, within(*this, diagonal) + 1), *this, kNothing);
}

Tensor Tensor::triu(int64_t diagonal) const {
  const Tensor distance = distances("triu", *this);
  return where(distance.binary(Op::CMPLT, within(*this, diagonal)), kNothing, *this);
}

Tensor Tensor::diag(int64_t diagonal) const {
  if (ndim() == 2) return this->diagonal(diagonal);
  if (ndim() != 1) {
    throw ShapeError(
        fmt::format("[diag] a vector or a matrix is needed, not {}", text_of_shape(shape())));
  }
  assume_exact({diagonal});
  const int64_t before = std::max<int64_t>(diagonal, 0), after = std::max<int64_t>(-diagonal, 0);
  int64_t side = 0;
  if (__builtin_add_overflow(numel(), before + after, &side)) side = INT64_MAX;
  checked_numel("diag", {side, side});
  const Tensor square = where(eye(numel(), {}, dtypes::bool_, device()), *this, kNothing);
  return square.pad({{after, before}, {before, after}}, kNothing);
}

Tensor& Tensor::replace(const Tensor& x) {
  if (!std::ranges::equal(shape(), x.shape())) {
    throw ShapeError(fmt::format("[replace] shapes {} and {} differ", text_of_shape(shape()),
                                 text_of_shape(x.shape())));
  }
  return *this = x;
}

}  // namespace weft
