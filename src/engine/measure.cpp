// A schedule that is cached nowhere, run again and again.
#include "engine/measure.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/ref.h"
#include "engine/prepare_schedule.h"
#include "engine/realize.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "runtime/array_bytes.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

// Memory that is there: pages of zeros that were never written are all the same one.
Ref<Buffer> touched_memory(Device& device, size_t bytes) {
  Ref<Buffer> memory = Buffer::make(device, bytes);
  memory->copy_in(std::vector<std::byte>(bytes));
  return memory;
}

std::vector<Ref<Buffer>> memory_of(const Schedule& schedule, Device& device) {
  std::vector<size_t> bytes(schedule.slot_count);
  for (const ScheduledBuffer& b : schedule.buffers) {
    bytes[b.slot] = std::max(bytes[b.slot], Buffer::bytes_for(device, b.dtype, b.size));
  }
  std::vector<Ref<Buffer>> slots;
  slots.reserve(bytes.size());
  for (const size_t n : bytes) slots.push_back(touched_memory(device, n));
  for (const ScheduledBuffer& b : schedule.buffers) {
    if (b.kind != ScheduledBuffer::Kind::kTable) continue;
    std::vector<std::byte> content(size_t(b.size) * size_t(b.dtype.item_bytes()));
    bytes_of_bits(b.dtype, b.data, content);
    slots[b.slot]->copy_in(content);
  }
  return slots;
}

Measured time_schedule(const Schedule& schedule, const PreparedSchedule& prepared, size_t repeats) {
  Device& device = *prepared.device;
  const std::vector<Ref<Buffer>> slots = memory_of(schedule, device);
  constexpr uint64_t never = std::numeric_limits<uint64_t>::max();
  Measured out;
  for (const KernelCall& call : schedule.calls) out.kernels.push_back({call.name, never});
  out.nanoseconds = never;
  for (size_t r = 0; r < std::max<size_t>(repeats, 1); r++) {
    uint64_t whole = 0;
    for (size_t i = 0; i < schedule.calls.size(); i++) {
      check_interrupt();
      const KernelCall& call = schedule.calls[i];
      std::vector<Buffer*> arguments;
      arguments.reserve(call.arguments.size());
      for (const uint32_t a : call.arguments)
        arguments.push_back(slots[schedule.buffers[a].slot].get());
      std::vector<int64_t> variables;
      variables.reserve(call.variables.size());
      for (const BoundVariable& v : call.variables) variables.push_back(v.value);
      const uint64_t begin = now_ns();
      prepared.kernels[call.kernel].program->run(arguments, variables);
      device.synchronize();
      const uint64_t taken = now_ns() - begin;
      out.kernels[i].nanoseconds = std::min(out.kernels[i].nanoseconds, taken);
      whole += taken;
    }
    out.nanoseconds = std::min(out.nanoseconds, whole);
  }
  return out;
}

}  // namespace

Measured measure_graph(UOp sink, Device& device, size_t repeats) {
  for (UOp n : toposort(sink)) {
    if (n.is(Op::COPY)) throw Error("[measure] the graph is of several devices");
  }
  return interruptible([&] {
    const std::lock_guard lock(realize_mutex());
    const uint64_t begin = now_ns();
    const Schedule schedule =
        make_schedule(sink, {.limits = device.limits(), .device = device.name()});
    const auto prepared = prepare_schedule(schedule, device);
    const uint64_t compiled = now_ns() - begin;
    Measured out = time_schedule(schedule, *prepared, repeats);
    out.compile_nanoseconds = compiled;
    return out;
  });
}

}  // namespace weft
