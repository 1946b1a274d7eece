// What normalisations end in.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "base/ref.h"
#include "formulas.h"
#include "tensor/deferred_tensor.h"
#include "value/value.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {

// function(x) weight + bias, where they are given: beside(parameter, x) is how a parameter stands
// beside it. One step, in the shape of x: functions are copied as bytes.
template <class Function, class Beside>
Ref<Value> scaled(const Ref<Value>& x, const Function& function, const Beside& beside,
                  const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias) {
  const auto plain = [function](Ints shape, const weft::Tensor& t) {
    return function(t).reshape(shape);
  };
  const auto stretched = [function, beside](Ints shape, const weft::Tensor& t,
                                            const weft::Tensor& w) {
    return function(t).mul(beside(w, t)).reshape(shape);
  };
  const auto moved = [function, beside](Ints shape, const weft::Tensor& t, const weft::Tensor& b) {
    return function(t).add(beside(b, t)).reshape(shape);
  };
  const auto both = [function, beside](Ints shape, const weft::Tensor& t, const weft::Tensor& w,
                                       const weft::Tensor& b) {
    return function(t).mul(beside(w, t)).add(beside(b, t)).reshape(shape);
  };
  const Ints shape = x->shape();
  if (!is_given(weight) && !is_given(bias)) return deferred_value({x->dtype(), shape}, plain, x);
  const Ref<Value> p = wide_value(is_given(weight) ? *weight : *bias);
  const DType dtype = wider(x->dtype(), p->dtype());
  if (!is_given(weight)) return deferred_value({dtype, shape}, moved, x, p);
  if (!is_given(bias)) return deferred_value({dtype, shape}, stretched, x, p);
  return deferred_value({dtype, shape}, both, x, p, wide_value(*bias));
}

}  // namespace weft::pytorch
