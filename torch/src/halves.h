// The two halves of a tensor along an axis.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "weft/tensor.h"

namespace weft::pytorch {

inline std::pair<weft::Tensor, weft::Tensor> halves_of(const weft::Tensor& x, int64_t dim) {
  const auto axis = size_t(dim < 0 ? dim + x.ndim() : dim);
  std::vector<std::pair<int64_t, int64_t>> first, second;
  for (const int64_t size : x.shape()) {
    first.emplace_back(0, size);
    second.emplace_back(0, size);
  }
  first[axis].second /= 2;
  second[axis].first = first[axis].second;
  return {x.shrink(Pairs(first)), x.shrink(Pairs(second))};
}

}  // namespace weft::pytorch
