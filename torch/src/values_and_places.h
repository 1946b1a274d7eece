// Operators that give values and the places along an axis that they are from. Places are one step
// until they are computed, and values another, of the operand and the places.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "storage.h"
#include "tensor/chosen.h"
#include "tensor/deferred_tensor.h"
#include "tensor/operand.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {

using Two = std::array<weft::Tensor, 2>;

// What places are found by: about how many Values that is made of.
template <class Formula>
struct Finding {
  Formula places;
  int64_t values;
};

// x at places(x), which has as many elements as this shape, and size 1 or more along the axis. A
// scalar is a row of one element.
template <class Formula>
Two values_and_places(const weft::Tensor& x, int64_t axis, Ints shape,
                      const Finding<Formula>& finding) {
  const auto row_of = [](const weft::Tensor& t) { return t.ndim() == 0 ? t.reshape({1}) : t; };
  const auto find = [places = finding.places, row_of](Ints sizes, const weft::Tensor& t) {
    return places(row_of(t)).reshape(sizes);
  };
  const auto look_up = [axis, row_of](Ints sizes, const weft::Tensor& t, const weft::Tensor& at) {
    const weft::Tensor row = row_of(t);
    Sizes along(row.shape());
    along[size_t(axis)] = at.numel() / (row.numel() / along[size_t(axis)]);
    std::vector<Places> all;  // surely in range
    all.reserve(along.size());
    for (size_t i = 0; i < along.size(); i++) {
      all.push_back(int64_t(i) == axis ? Places{read(at.reshape(along))}
                                       : counted_places(weft_device(), along[i], i, along.size()));
    }
    const Chosen chosen{row, 0, row.ndim(), merged_places(all, row.shape(), along)};
    return chosen.read().reshape(sizes);
  };
  weft::Tensor places =
      deferred_tensor(TensorOutcome{dtypes::int64, shape, finding.values}, find, x);
  weft::Tensor values = deferred_tensor(x.dtype(), shape, look_up, x, places);
  return {std::move(values), std::move(places)};
}

}  // namespace weft::pytorch
