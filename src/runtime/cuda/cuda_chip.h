// What of a GPU of NVIDIA kernels are chosen for, as data: of the driver, or of a chip that need
// not be there.
#pragma once

#include <cstddef>

#include "codegen/target.h"

namespace weft {

struct CudaChip {
  size_t architecture;  // 90: compute capability 9.0
  size_t multiprocessors;
  size_t most_shared_bytes;  // of one group
  bool has_boxes;            // and its driver makes the maps of arrays
};

inline constexpr CudaChip kH200{90, 132, size_t(227) << 10, true};

// The renderer's target with the sizes of the chip.
Target target_of_chip(Target target, const CudaChip& chip);

}  // namespace weft
