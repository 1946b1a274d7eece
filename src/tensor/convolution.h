// Convolution of a tensor whose place in memory is known to the caller.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/tensor.h"

namespace weft {

// Whether elements that follow each other along the last axis do so in memory.
enum class LastAxis : uint8_t { kInOrder, kStrided };

// What Tensor::conv2d says.
Tensor convolution(const Tensor& x, LastAxis order, const Tensor& weight,
                   const std::optional<Tensor>& bias, const ConvOptions& options);

}  // namespace weft
