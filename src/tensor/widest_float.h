// The float dtype to compute in where rounding must not count.
#pragma once

#include "ir/dtype.h"
#include "rewrite/pattern.h"
#include "runtime/device.h"

namespace weft {

// float64, or float32 on devices without it: there one number is the sum of two.
inline DType widest_float(const Device& device) {
  const bool has_double = (device.missing_dtypes() & set_of(Scalar::kFloat64)) == 0;
  return has_double ? dtypes::float64 : dtypes::float32;
}

}  // namespace weft
