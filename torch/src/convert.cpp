// PyTorch's dtypes, numbers and lists as weft's.
#include "convert.h"

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include "weft/dtype.h"
#include "weft/number.h"

namespace weft::pytorch {

Held held(c10::ScalarType type) {
  using T = c10::ScalarType;
  switch (type) {
    case T::Bool: return {dtypes::bool_};
    case T::Char: return {dtypes::int8};
    case T::Short: return {dtypes::int16};
    case T::Int: return {dtypes::int32};
    case T::Long: return {dtypes::int64};
    case T::Byte: return {dtypes::uint8};
    case T::UInt16: return {dtypes::uint16};
    case T::UInt32: return {dtypes::uint32};
    case T::UInt64: return {dtypes::uint64};
    case T::Half: return {dtypes::float16};
    case T::BFloat16: return {dtypes::bfloat16};
    case T::Float: return {dtypes::float32};
    case T::Double: return {dtypes::float64};
    case T::ComplexHalf: return {dtypes::float16, true, false};
    case T::ComplexFloat: return {dtypes::float32, true, false};
    case T::ComplexDouble: return {dtypes::float64, true, false};
    default: break;
  }
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
