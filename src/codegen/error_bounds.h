// How far the functions of decompose may be from the true value.
#pragma once

#include "ir/dtype.h"
#include "ir/op.h"

namespace weft {

// In units of the last place of the result: |computed - true| is at most `ulp` times the distance
// of the floats around the true value (that of subnormals at least). For every argument of the
// dtype; infinities, NaN and signed zeros are exactly those of IEEE 754.
struct ErrorBound {
  Op op;
  DType dtype;
  double ulp;
};

// clang-format off
inline constexpr ErrorBound kErrorBounds[] = {
    {Op::EXP2, dtypes::float32, 2},    {Op::EXP, dtypes::float32, 2},
    {Op::LOG2, dtypes::float32, 2},    {Op::LOG, dtypes::float32, 2},
    {Op::SIN,  dtypes::float32, 2},    {Op::COS, dtypes::float32, 2},
    {Op::EXP2, dtypes::float64, 2},    {Op::EXP, dtypes::float64, 2},
    {Op::LOG2, dtypes::float64, 2},    {Op::LOG, dtypes::float64, 2},
    {Op::SIN,  dtypes::float64, 3},    {Op::COS, dtypes::float64, 3},
};
// clang-format on

}  // namespace weft
