// How a tensor reads its storage: which element lies where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "weft/dtype.h"
#include "weft/small_vector.h"  // IWYU pragma: export

namespace weft {

// A list of numbers as an argument: from {2, 3}, a span, a vector or Sizes. It borrows them.
class Ints : public std::span<const int64_t> {
 public:
  Ints() = default;
  Ints(std::span<const int64_t> list) : span(list) {}          // NOLINT: any list will do
  Ints(const std::vector<int64_t>& list) : span(list) {}       // NOLINT
  Ints(const Sizes& list) : span(list.data(), list.size()) {}  // NOLINT
  Ints(std::initializer_list<int64_t> list) : span(list.begin(), list.size()) {}  // NOLINT
};

// Element (i, j, ...) is element offset + i*strides[0] + j*strides[1] + ... of a flat storage whose
// elements have this dtype's width.
struct View {
  DType dtype;
  Sizes shape;
  Sizes strides;
  int64_t offset = 0;

  size_t rank() const { return shape.size(); }
  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    return n;
  }
  bool operator==(const View&) const = default;
};

}  // namespace weft
