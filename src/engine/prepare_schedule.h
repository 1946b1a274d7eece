// The kernels of a schedule as programs, made once.
#pragma once

#include <memory>
#include <vector>

#include "runtime/device.h"
#include "runtime/kernel_flops.h"
#include "runtime/program.h"
#include "schedule/schedule.h"
#include "schedule/size_use.h"

namespace weft {

struct PreparedKernel {
  std::shared_ptr<Program> program;
  KernelFlops flops;
};

struct PreparedSchedule {
  Device* device;
  int beam;                             // the configuration's when they were compiled
  std::vector<PreparedKernel> kernels;  // of Schedule::kernels
  // Of programs that serve other sizes, too.
  std::vector<std::shared_ptr<SizeUse>> uses{};

  bool is_spent() const;  // programs that the device would make now are faster
};

// Compiles all kernels, several at a time where the device says so, or finds them with the schedule
// or a copy of it. Throws CompileError or Stopped, and nothing is kept. The lock of realise is
// held.
std::shared_ptr<const PreparedSchedule> prepare_schedule(const Schedule& schedule, Device& device);

}  // namespace weft
