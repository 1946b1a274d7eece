// How far the functions of decompose may be from the true value.
#pragma once

#include "ir/dtype.h"
#include "ir/op.h"

namespace weft {

// In units of the last place of the result: |computed - true| is at most `ulp` times the distance
// of the floats around the true value (that of subnormals at least). For every argument of the
// dtype, with a fused multiply-add or without; infinities, NaN and signed zeros are exactly those
// of IEEE 754. Every other op is correctly rounded.
struct ErrorBound {
  Op op;
  DType dtype;
  double ulp;
};

// clang-format off
inline constexpr ErrorBound kErrorBounds[] = {
    {Op::EXP2, dtypes::float32, 2}, {Op::EXP, dtypes::float32, 2},
    {Op::LOG2, dtypes::float32, 2}, {Op::LOG, dtypes::float32, 2},
    {Op::SIN, dtypes::float32, 2}, {Op::COS, dtypes::float32, 2},
    {Op::EXP2, dtypes::float64, 2}, {Op::EXP, dtypes::float64, 2},
    {Op::LOG2, dtypes::float64, 2}, {Op::LOG, dtypes::float64, 2},
    {Op::SIN, dtypes::float64, 2.5}, {Op::COS, dtypes::float64, 2.5},
    {Op::EXP2, dtypes::float16, 0.51}, {Op::EXP, dtypes::float16, 0.51},
    {Op::LOG2, dtypes::float16, 0.51}, {Op::LOG, dtypes::float16, 0.51},
    {Op::SIN, dtypes::float16, 0.51}, {Op::COS, dtypes::float16, 0.51},
    {Op::EXP2, dtypes::bfloat16, 0.51}, {Op::EXP, dtypes::bfloat16, 0.51},
    {Op::LOG2, dtypes::bfloat16, 0.51}, {Op::LOG, dtypes::bfloat16, 0.51},
    {Op::SIN, dtypes::bfloat16, 0.51}, {Op::COS, dtypes::bfloat16, 0.51},
    {Op::EXP2, dtypes::float8_e5m2, 0.51}, {Op::EXP, dtypes::float8_e5m2, 0.51},
    {Op::LOG2, dtypes::float8_e5m2, 0.51}, {Op::LOG, dtypes::float8_e5m2, 0.51},
    {Op::SIN, dtypes::float8_e5m2, 0.51}, {Op::COS, dtypes::float8_e5m2, 0.51},
    {Op::EXP2, dtypes::float8_e4m3, 0.51}, {Op::EXP, dtypes::float8_e4m3, 0.51},
    {Op::LOG2, dtypes::float8_e4m3, 0.51}, {Op::LOG, dtypes::float8_e4m3, 0.51},
    {Op::SIN, dtypes::float8_e4m3, 0.51}, {Op::COS, dtypes::float8_e4m3, 0.51},
};
// clang-format on

}  // namespace weft
