// Computes what storages hold.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "engine/prepare_schedule.h"
#include "ir/walk.h"
#include "runtime/device.h"
#include "schedule/schedule.h"
#include "value/import.h"
#include "value/storage.h"
#include "weft/scheduled_kernel.h"

namespace weft {

// The versions of these storages, together, one schedule per device. Afterwards each is in memory,
// and so is the version of every other Storage that had to be computed on the way. Threads wait for
// each other; what one has realised the next finds done.
//
// Everything is scheduled, compiled and allocated before anything runs, and every Value is filled
// after all has run: an error changes nothing. What cannot be undone is a kernel that wrote in
// place before a later one of its schedule failed on the device: the versions that this memory
// belongs to are lost, and reading them is a DeviceError, never data, until all of the storage is
// written anew.
// A request (weft/interrupt.h) ends it as an error would, before the first kernel that writes in
// place what the program holds. What has been realised on one device by then stays so.
void realize(std::span<Storage* const> storages);

// The kernels that this would run now, in order, compiled, and how many. Nothing runs or is
// allocated.
std::vector<ScheduledKernel> kernels_to_realize(std::span<Storage* const> storages);
size_t count_kernels_to_realize(std::span<Storage* const> storages);

// The graph of what this storage is to hold, as a realise would schedule it now; of one in memory,
// a BUFFER. Nothing runs.
Graph graph_to_realize(Storage& storage);

// Whether realise schedules and compiles; else the reference evaluator computes everything, on the
// device's memory: by the configuration, or by a choice of this thread.
bool schedules_are_used();
void set_reference_only(bool is_only);

// Held by whoever computes Values and fills them; before the lock of the graph.
InterruptibleMutex& realize_mutex();

// A schedule with its kernels compiled.
struct CompiledSchedule {
  std::shared_ptr<const Schedule> schedule;
  std::shared_ptr<const PreparedSchedule> prepared;
};
// As realise finds or makes it. Where the device refuses kernels that serve other sizes, too, those
// for these sizes alone.
CompiledSchedule compiled_schedule_of(const Imported& imported, Device& device,
                                      OutputMemory outputs);

}  // namespace weft
