// Arrays of the reference evaluator: a dtype, a shape, and the bits of every element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace weft {

struct Array {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<uint64_t> data;  // canonical bits (ir/scalar.h), row-major, lanes adjacent

  // All elements zero.
  static Array zeros(DType dtype, std::vector<int64_t> shape);
  // From one number per lane of every element: integers wrap, floats round to the dtype. Throws
  // ShapeError when there are more or fewer numbers than the shape has.
  static Array of_ints(DType dtype, std::vector<int64_t> shape,
                       const std::vector<int64_t>& numbers);
  static Array of_doubles(DType dtype, std::vector<int64_t> shape,
                          const std::vector<double>& numbers);
  static Array of_bits(DType dtype, std::vector<int64_t> shape, std::vector<uint64_t> bits);
  static Array scalar(DType dtype, uint64_t bits);
  // What an effect gives: dtype void, no elements.
  static Array nothing();

  int64_t size() const;  // elements
  // Every lane as a number: floats truncate and saturate to integers, wide integers round to
  // doubles.
  std::vector<int64_t> ints() const;
  std::vector<double> doubles() const;

  bool operator==(const Array&) const = default;  // by bits
  std::string text() const;                       // "float32 (2,2) [1.0, 2.0, 3.0, 4.0]"
};

// The number of elements of a shape; throws ShapeError on a negative size or past 64 bits.
int64_t size_of(const std::vector<int64_t>& shape);

// The strides of a shape in row-major order.
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);

// Steps coordinates to the next of a shape in row-major order; false past the last one.
bool advance(std::vector<int64_t>& coordinates, const std::vector<int64_t>& shape);

std::string text_of_sizes(const std::vector<int64_t>& shape);  // "(2,3)"

}  // namespace weft
