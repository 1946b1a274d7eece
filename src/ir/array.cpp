// Making, reading and printing arrays.
#include "ir/array.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/scalar.h"

namespace weft {
namespace {

template <class Number, class Convert>
Array convert(DType dtype, std::vector<int64_t> shape, const std::vector<Number>& numbers,
              Convert&& bits_of) {
  std::vector<uint64_t> data;
  data.reserve(numbers.size());
  for (const Number n : numbers) data.push_back(bits_of(dtype, n));
  return Array::of_bits(dtype, std::move(shape), std::move(data));
}

}  // namespace

Array Array::zeros(DType dtype, std::vector<int64_t> shape) {
  const auto lanes = size_t(size_of(shape)) * dtype.lanes;
  return {dtype, std::move(shape), std::vector<uint64_t>(lanes, 0)};
}

Array Array::of_ints(DType dtype, std::vector<int64_t> shape, const std::vector<int64_t>& numbers) {
  return convert(dtype, std::move(shape), numbers, bits_of_int);
}

Array Array::of_doubles(DType dtype, std::vector<int64_t> shape,
                        const std::vector<double>& numbers) {
  return convert(dtype, std::move(shape), numbers, bits_of_double);
}

Array Array::of_bits(DType dtype, std::vector<int64_t> shape, std::vector<uint64_t> bits) {
  const auto lanes = size_t(size_of(shape)) * dtype.lanes;
  if (bits.size() != lanes) {
    throw ShapeError(fmt::format("[array] {} of shape {} has {} numbers, {} were given",
                                 dtype.name(), text_of_sizes(shape), lanes, bits.size()));
  }
  return {dtype, std::move(shape), std::move(bits)};
}

Array Array::scalar(DType dtype, uint64_t bits) {
  return {dtype, {}, std::vector<uint64_t>(dtype.lanes, bits)};
}

Array Array::nothing() { return {dtypes::void_, {0}, {}}; }

int64_t Array::size() const { return size_of(shape); }

std::vector<int64_t> Array::ints() const {
  std::vector<int64_t> out;
  out.reserve(data.size());
  for (const uint64_t bits : data) {
    out.push_back(dtype.is_float()
                      ? int64_t(bits_of_double(dtypes::int64, double_of_bits(dtype, bits)))
                      : int64_t(bits));
  }
  return out;
}

std::vector<double> Array::doubles() const {
  std::vector<double> out;
  out.reserve(data.size());
  for (const uint64_t bits : data) out.push_back(double_of_bits(dtype, bits));
  return out;
}

std::string Array::text() const {
  constexpr size_t most = 64;
  std::string out = fmt::format("{} {} [", dtype.name(), text_of_sizes(shape));
  for (size_t i = 0; i < data.size() && i < most; i++) {
    if (i > 0) out += ", ";
    out += text_of_bits(dtype, data[i]);
  }
  return out + (data.size() > most ? ", ...]" : "]");
}

int64_t size_of(const std::vector<int64_t>& shape) {
  int64_t size = 1;
  bool is_empty = false, fits = true;
  for (const int64_t s : shape) {
    if (s < 0) throw ShapeError(fmt::format("[array] {} is no shape", text_of_sizes(shape)));
    is_empty |= s == 0;
    fits &= s == 0 || !__builtin_mul_overflow(size, s, &size);
  }
  if (is_empty) return 0;
  if (!fits) {
    throw ShapeError(fmt::format("[array] {} has too many elements", text_of_sizes(shape)));
  }
  return size;
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  uint64_t stride = 1;  // may wrap beside a size of 0, where no element uses it
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = int64_t(stride);
    stride *= uint64_t(shape[i]);
  }
  return strides;
}

bool advance(std::vector<int64_t>& coordinates, const std::vector<int64_t>& shape) {
  for (size_t i = shape.size(); i-- > 0;) {
    if (++coordinates[i] < shape[i]) return true;
    coordinates[i] = 0;
  }
  return false;
}

std::string text_of_sizes(const std::vector<int64_t>& shape) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ","));
}

}  // namespace weft
