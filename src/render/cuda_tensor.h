// Products of tiles in CUDA C: wgmma on sm_90a, mma of warps on others from sm_80 on.
#pragma once

#include "render/gpu_c.h"

namespace weft {

extern const GpuTensorText kCudaTensor;

}  // namespace weft
