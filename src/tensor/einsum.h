// Products that are summed, in the dtype in which sums are.
#pragma once

#include <optional>

#include "ir/dtype.h"
#include "weft/tensor.h"

namespace weft {

// a * b, broadcast, summed over the axes; `what` names the operation in errors. Multiplied and
// added in the accumulator of the dtype that they meet in, or of `dtype`.
Tensor sum_of_products(const char* what, const Tensor& a, const Tensor& b, const Axes& over,
                       std::optional<DType> dtype = {});

}  // namespace weft
