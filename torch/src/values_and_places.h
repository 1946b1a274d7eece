// Operators that give values and the places along an axis that they are from. Places are one call,
// and values another, of the operand and the places.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "storage.h"
#include "tensor/calls.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {

using Two = std::array<weft::Tensor, 2>;

// A scalar is a row of one element.
inline weft::Tensor row_of(const weft::Tensor& t) { return t.ndim() == 0 ? t.reshape({1}) : t; }

inline constexpr auto kAtPlaces =
    row("at_places", [](Ints sizes, int64_t axis, const weft::Tensor& t, const weft::Tensor& at) {
      const weft::Tensor x = row_of(t);
      Sizes along(x.shape());
      along[size_t(axis)] = at.numel() / (x.numel() / along[size_t(axis)]);
      std::vector<Places> all;  // surely in range
      all.reserve(along.size());
      for (size_t i = 0; i < along.size(); i++) {
        all.push_back(int64_t(i) == axis
                          ? Places{read(at.reshape(along))}
                          : counted_places(weft_device(), along[i], i, along.size()));
      }
      const Chosen chosen{x, 0, x.ndim(), merged_places(all, x.shape(), along)};
      return chosen.read().reshape(sizes);
    });

// x at the places that a call of this row finds, of so many Values about: as many as this shape has
// elements, and with size 1 or more along the axis.
template <const auto& kFind, class... Attributes>
Two values_and_places(const weft::Tensor& x, int64_t axis, Ints shape, int64_t values,
                      Attributes... attributes) {
  weft::Tensor places = call<kFind>({dtypes::int64, shape, values}, axis, attributes..., x);
  weft::Tensor at_places = call<kAtPlaces>({x.dtype(), shape}, axis, x, places);
  return {std::move(at_places), std::move(places)};
}

}  // namespace weft::pytorch
