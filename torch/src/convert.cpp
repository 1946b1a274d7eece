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

Number number_of(const c10::Scalar& scalar) {
  if (scalar.isBoolean()) return scalar.toBool();
  if (scalar.isIntegral(false)) return scalar.toLong();
  return scalar.toDouble();
}

}  // namespace weft::pytorch
