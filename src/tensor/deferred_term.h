// Functions of Terms that are made of many operations, recorded as one (value/deferred.h).
//
//   Term erf(const Term& x) { return deferred<erf_of>(x); }
#pragma once

#include <cstdint>

#include "base/ref.h"
#include "tensor/term.h"
#include "value/deferred.h"
#include "value/value.h"
#include "weft/view.h"

namespace weft {

inline constexpr int64_t kValuesOfFunction = 64;

// formula(x): of the dtype and shape of x.
template <Term (*formula)(const Term&)>
Term deferred(const Term& x) {
  const Value& like = *x.value();
  const auto written_out = [](Ints, const Ref<Value>& v) { return formula(Term(v)).value(); };
  return Term(deferred({like.dtype(), like.device(), like.shape(), kValuesOfFunction}, written_out,
                       x.value()));
}
// formula(x, y): of the dtype of both, and the shape of x, or of y where x is a scalar.
template <Term (*formula)(const Term&, const Term&)>
Term deferred(const Term& x, const Term& y) {
  const Value& like = *(x.value()->shape().empty() ? y : x).value();
  const auto written_out = [](Ints, const Ref<Value>& v, const Ref<Value>& w) {
    return formula(Term(v), Term(w)).value();
  };
  return Term(deferred({like.dtype(), like.device(), like.shape(), kValuesOfFunction}, written_out,
                       x.value(), y.value()));
}
// formula(x, rest...), which is copied as bytes: of the dtype and shape of x. A few operations.
template <class Formula, class... Rest>
Term deferred_step(const Formula& formula, const Term& x, const Rest&... rest) {
  constexpr int64_t values = 8;
  const Value& like = *x.value();
  const auto written_out = [formula](Ints, const auto&... read) {
    return formula(Term(read)...).value();
  };
  return Term(deferred({like.dtype(), like.device(), like.shape(), values}, written_out, x.value(),
                       rest.value()...));
}

}  // namespace weft
