// PyTorch's dtypes, numbers and lists as weft's.
#include "convert.h"

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include "weft/dtype.h"
#include "weft/number.h"

namespace weft::pytorch {

Held detail::held_by_width(c10::ScalarType type) {
  switch (c10::elementSize(type)) {
    case 1: return {dtypes::uint8, false, false};
    case 2: return {dtypes::uint16, false, false};
    case 4: return {dtypes::uint32, false, false};
    case 8: return {dtypes::uint64, false, false};
    default: TORCH_CHECK_TYPE(false, "weft: no memory for elements of ", type);
  }
}

DType dtype_of(c10::ScalarType type) {
  const Held h = held(type);
  TORCH_INTERNAL_ASSERT(h.is_computed, "weft does not compute with ", type);
  return h.dtype;
}

const c10::Scalar& checked_number(const c10::Scalar& scalar, c10::ScalarType type) {
  switch (type) {
#define WEFT_CASE(ctype, name) \
  case c10::ScalarType::name: static_cast<void>(scalar.to<ctype>()); break;
    AT_FORALL_SCALAR_TYPES_AND3(Bool, Half, BFloat16, WEFT_CASE)  // NOLINT: PyTorch's macro
#undef WEFT_CASE
    default: break;
  }
  return scalar;  // NOLINT(bugprone-return-const-ref-from-parameter)
}

Number number_of(const c10::Scalar& scalar) {
  if (scalar.isBoolean()) return scalar.toBool();
  if (scalar.isIntegral(false)) return scalar.toLong();
  return scalar.toDouble();
}

}  // namespace weft::pytorch
