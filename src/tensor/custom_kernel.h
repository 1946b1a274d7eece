// Kernels that users write, on tensors.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "ir/walk.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

struct CustomOutput {
  Sizes shape;
  DType dtype;
};

// New tensors that a kernel writes all elements of, when one of them is asked for. DEFINE_GLOBAL i
// is the memory of output i, or of an input after them, in row-major order; inputs are those of
// now. No gradient passes. Throws SpecError for a graph that is no kernel, or has memory of others.
std::vector<Tensor> custom_kernel(const Graph& ast, std::string name,
                                  std::span<const CustomOutput> outputs,
                                  std::span<const Tensor> inputs, std::string_view device);

}  // namespace weft
