// Functions of tensors that are made of many operations, recorded as one (value/deferred.h).
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/ref.h"
#include "ir/dtype.h"
#include "tensor/operand.h"
#include "value/deferred.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

namespace detail {

template <class Formula, class... Tensors>
Tensor formula_of_tensors(const Formula& formula, DType dtype, Ints shape,
                          const Tensors&... tensors) {
  if constexpr (std::is_invocable_v<const Formula&, Ints, const Tensors&...>) {
    return formula(shape, tensors...).cast(dtype);
  } else {
    return formula(tensors...).cast(dtype);
  }
}

}  // namespace detail

// What a formula of tensors gives, and about how many Values it is made of.
struct TensorOutcome {
  DType dtype;
  Ints shape;
  int64_t values = 16;
};

// formula(tensors...), or formula(shape, tensors...), which has this shape, cast to this dtype: one
// step until it is computed. The formula is copied as bytes; it does not throw and reads no memory.
template <class Formula, class... Rest>
Tensor deferred_tensor(const TensorOutcome& outcome, const Formula& formula, const Tensor& first,
                       const Rest&... rest) {
  const DType dtype = outcome.dtype;
  const Ints shape = outcome.shape;
  // As the step would be: a tensor of its own, though the formula ends in a view.
  const auto at_once = [&] {
    return tensor_of(read(detail::formula_of_tensors(formula, dtype, shape, first, rest...)));
  };
  if (detail::are_written_at_once()) return at_once();
  auto read_all = [](const auto&... all) { return std::tuple(read(all)...); };
  return std::apply(
      [&](auto... given) {
        if ((given->is_tracked() || ...)) return at_once();
        const auto written_out = [formula, dtype](Ints sizes, auto... later) {
          return read(
              detail::formula_of_tensors(formula, dtype, sizes, tensor_of(std::move(later))...));
        };
        return tensor_of(deferred({dtype, device_of(first), shape, outcome.values}, written_out,
                                  std::move(given)...));
      },
      read_all(first, rest...));
}
// The same of what was read already, as a Value.
template <class Formula, class... Sources>
Ref<Value> deferred_value(const TensorOutcome& outcome, const Formula& formula,
                          const Ref<Value>& first, const Sources&... rest) {
  const auto written_out = [formula, dtype = outcome.dtype](Ints sizes, auto... later) {
    return read(detail::formula_of_tensors(formula, dtype, sizes, tensor_of(std::move(later))...));
  };
  return deferred({outcome.dtype, first->device(), outcome.shape, outcome.values}, written_out,
                  first, rest...);
}
template <class Formula, class... Rest>
Tensor deferred_tensor(DType dtype, Ints shape, const Formula& formula, const Tensor& first,
                       const Rest&... rest) {
  return deferred_tensor(TensorOutcome{dtype, shape}, formula, first, rest...);
}

}  // namespace weft
