// Calls of kernels as one CUDA graph, which the GPU runs without the CPU.
#pragma once

#include <memory>
#include <span>

#include "runtime/cuda/cuda_context.h"
#include "runtime/program.h"

namespace weft {

// Null where a program is none of CUDA's.
std::unique_ptr<RecordedCalls> record_cuda(CudaGpu& gpu, std::span<const RecordedCall> calls);

}  // namespace weft
