// Operators that give values and the places along an axis that they are from. Places are one step
// until they are computed, and values another, of the operand and the places.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensor/deferred_tensor.h"
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
    const int64_t size = along[size_t(axis)];
    along[size_t(axis)] = at.numel() / (row.numel() / size);
    // They are in range anyway: this says so.
    const weft::Tensor index = at.reshape(along).maximum(int64_t(0)).minimum(size - 1);
    return row.gather(axis, index).reshape(sizes);
  };
  weft::Tensor places =
      deferred_tensor(TensorOutcome{dtypes::int64, shape, finding.values}, find, x);
  weft::Tensor values = deferred_tensor(x.dtype(), shape, look_up, x, places);
  return {std::move(values), std::move(places)};
}

}  // namespace weft::pytorch
