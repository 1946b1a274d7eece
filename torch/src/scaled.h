// What normalisations end in.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "base/ref.h"
#include "formulas.h"
#include "tensor/calls.h"
#include "value/value.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {

// What a normalisation is, as an attribute: its name as kName, fields(), of(x), and beside(p, x),
// how a parameter stands beside the result.
template <class Norm>
constexpr auto kNormed = row(Norm::kName, [](Ints shape, const Norm& norm, const weft::Tensor& x) {
  return norm.of(x).reshape(shape);
});
// ... times a weight, or moved by a bias; and both.
template <class Norm>
constexpr auto kNormedWithOne = row(Norm::kName, [](Ints shape, const Norm& norm, bool is_weight,
                                                    const weft::Tensor& x, const weft::Tensor& p) {
  const weft::Tensor y = norm.of(x), beside = norm.beside(p, x);
  return (is_weight ? y.mul(beside) : y.add(beside)).reshape(shape);
});
template <class Norm>
constexpr auto kNormedWithBoth =
    row(Norm::kName, [](Ints shape, const Norm& norm, const weft::Tensor& x,
                        const weft::Tensor& weight, const weft::Tensor& bias) {
      return norm.of(x).mul(norm.beside(weight, x)).add(norm.beside(bias, x)).reshape(shape);
    });

// norm(x) weight + bias, where they are given: one call, in the shape of x.
template <class Norm>
Ref<Value> scaled(const Ref<Value>& x, const Norm& norm, const std::optional<at::Tensor>& weight,
                  const std::optional<at::Tensor>& bias) {
  const Ints shape = x->shape();
  if (!is_given(weight) && !is_given(bias)) {
    return call<kNormed<Norm>>({x->dtype(), shape}, norm, x);
  }
  const Ref<Value> p = wide_value(is_given(weight) ? *weight : *bias);
  const DType dtype = wider(x->dtype(), p->dtype());
  if (!is_given(weight) || !is_given(bias)) {
    return call<kNormedWithOne<Norm>>({dtype, shape}, norm, is_given(weight), x, p);
  }
  return call<kNormedWithBoth<Norm>>({dtype, shape}, norm, x, p, wide_value(*bias));
}

}  // namespace weft::pytorch
