// The devices CPU, CPU:LLVM and CPU:C: memory of this process, kernels compiled for its CPU.
#pragma once

#include "runtime/device.h"

namespace weft {

// By LLVM where it is installed, else by a C compiler; DeviceError at the first kernel when neither
// is.
Device& cpu_device();
Device& cpu_llvm_device();
Device& cpu_c_device();

}  // namespace weft
