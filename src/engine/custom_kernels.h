// Kernels of users as programs, and what they are called on.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/ref.h"
#include "engine/prepare_schedule.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "value/custom_kernel.h"
#include "weft/scheduled_kernel.h"

namespace weft {

// Compiles the kernel, or finds the program of an equal one. Throws CompileError. The lock of
// realise is held.
std::shared_ptr<const PreparedKernel> prepare_custom_kernel(const CustomKernel& kernel,
                                                            Device& device);

// Runs it on memory of its inputs, and gives that of its outputs.
std::vector<Ref<Buffer>> run_custom_kernel(const CustomKernel& kernel, Device& device,
                                           std::span<const Ref<Buffer>> inputs);

// For people.
ScheduledKernel describe_custom_kernel(const CustomKernel& kernel, Device& device);

}  // namespace weft
