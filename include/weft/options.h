// What methods of tensors can be told beside their operands.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/dtype.h"

namespace weft {

// How a division rounds.
enum class Rounding : uint8_t { kNone, kTowardZero, kDown };

// How gelu is computed: by tanh, as most models were trained, or by erf.
enum class Gelu : uint8_t { kTanh, kErf };

// What a loss does with the losses of its elements.
enum class Reduction : uint8_t { kNone, kMean, kSum };

// Of windows over the last axes. Lists of one number are for every axis; padding may have two per
// axis, from the last axis on.
struct PoolOptions {
  std::vector<int64_t> kernel_size = {2, 2};
  std::vector<int64_t> stride = {};  // none: the kernel's size
  std::vector<int64_t> dilation = {1};
  std::vector<int64_t> padding = {0};
  bool ceil_mode = false;         // windows that end outside count
  bool count_include_pad = true;  // of avg_pool2d
};
struct ConvOptions {
  int64_t groups = 1;
  std::vector<int64_t> stride = {1};
  std::vector<int64_t> dilation = {1};
  std::vector<int64_t> padding = {0};
  std::vector<int64_t> output_padding = {0};  // of conv_transpose2d
  std::optional<DType> dtype = std::nullopt;  // to add in
};
enum class Interpolation : uint8_t { kLinear, kNearest, kNearestExact, kCubic };

}  // namespace weft
