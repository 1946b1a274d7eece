// Calls (value/call.h) whose bodies are functions of Tensors, or of Terms.
//
// The body of a call on Tensors gives one that is cast to the dtype of the outcome, and may be a
// view: the call is a tensor of its own.
#pragma once

#include <cstdint>
#include <utility>

#include "base/ref.h"
#include "ir/dtype.h"
#include "tensor/operand.h"
#include "tensor/term.h"
#include "value/call.h"  // IWYU pragma: export
#include "value/row.h"   // IWYU pragma: export
#include "value/value.h"
#include "weft/tensor.h"

namespace weft {

template <>
struct CallSource<Tensor> {
  static constexpr int64_t kValues = 16;
  static Ref<Value> value(const Tensor& x) { return read(x); }
  static Tensor of(Ref<Value> x) { return tensor_of(std::move(x)); }
  static Ref<Value> result(const Tensor& y, DType dtype) { return read(y.cast(dtype)); }
};

template <>
struct CallSource<Term> {
  static constexpr int64_t kValues = 64;
  static const Ref<Value>& value(const Term& x) { return x.value(); }
  static Term of(Ref<Value> x) { return Term(std::move(x)); }
  static Ref<Value> result(const Term& y, DType) { return y.value(); }
};

}  // namespace weft
