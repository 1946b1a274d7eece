// A chip's numbers into the target that the passes of codegen read.
#include "runtime/cuda/cuda_chip.h"

#include <cstddef>
#include <utility>

#include "codegen/target.h"
#include "runtime/cuda/cuda_compiler.h"
#include "runtime/gpu/gpu_machine.h"

namespace weft {
namespace {

// With copies that run beside products, and with products of four warps from local memory.
constexpr size_t kTensorArchitecture = 80, kWideArchitecture = 90;
constexpr size_t kGroupsOfOne = 8;  // that run at a time on a multiprocessor

}  // namespace

Target target_of_chip(Target target, const CudaChip& chip) {
  Target out = std::move(target);
  const size_t together = chip.multiprocessors * kGroupsOfOne;
  out.groups.threads = 1024;
  out.groups.warp = 32;
  out.groups.local_bytes = kStaticSharedBytes;
  out.groups.together = together;
  out.limits.pieces = together;
  out.limits.machine = gpu_machine(chip.multiprocessors);
  if (chip.architecture >= kTensorArchitecture && out.tensor.dtypes != 0) {
    out.tensor.local_bytes = chip.most_shared_bytes;
    out.tensor.most_columns = chip.architecture == kWideArchitecture ? 256 : 128;
    out.tensor.has_boxes = chip.has_boxes && chip.architecture >= kWideArchitecture;
  } else {
    out.tensor = {};
  }
  out.narrow_indices = true;
  out.limits.sequences = false;
  out.limits.tile_bytes = out.tensor.local_bytes;
  return out;
}

}  // namespace weft
