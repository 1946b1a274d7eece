// Runs an imported graph on the memory of its device.
#pragma once

#include <vector>

#include "base/ref.h"
#include "engine/prepare_schedule.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "schedule/schedule.h"
#include "value/import.h"

namespace weft {

// Makes the memory of BUFFERs that have none.
void allocate_buffers(Imported& imported, Device& device);

// All memory is allocated before the first kernel. The memory that holds each output; that of a
// dying BUFFER may be among them. When a kernel fails, those before it have run: dying BUFFERs that
// they wrote to are lost, all else is as it was. Stopped, all is as it was.
std::vector<Ref<Buffer>> run_schedule(const Schedule& schedule, const PreparedSchedule& prepared,
                                      const Imported& imported);

// The same by evaluating the tensor graph itself; outputs are always in new memory. Counts as one
// kernel per output.
std::vector<Ref<Buffer>> run_reference(const Imported& imported, Device& device);

}  // namespace weft
