// Slots to buffers, then call after call.
#include "engine/run_schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ref.h"
#include "base/small_vector.h"
#include "engine/prepare_schedule.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "runtime/array_bytes.h"
#include "runtime/buffer.h"
#include "runtime/counters.h"
#include "runtime/debug.h"
#include "runtime/device.h"
#include "runtime/kernel_flops.h"
#include "runtime/kernel_operations.h"
#include "schedule/schedule.h"
#include "value/import.h"
#include "value/storage.h"

namespace weft {
namespace {

size_t bytes_of(const ScheduledBuffer& buffer) {
  return size_t(buffer.size) * size_t(buffer.dtype.item_bytes());
}

using Slots = std::vector<Ref<Buffer>>;  // the memory of each

Slots allocate_slots(const Schedule& schedule, const Imported& imported, Device& device) {
  using Kind = ScheduledBuffer::Kind;
  Slots slots(schedule.slot_count);
  SmallVector<size_t, 8> bytes(schedule.slot_count);
  for (const ScheduledBuffer& buffer : schedule.buffers) {
    if (buffer.kind == Kind::kInput) {
      slots[buffer.slot] = imported.buffers[size_t(buffer.id)].memory;
      slots[buffer.slot]->check_lender();
    }
    const size_t needed = Buffer::bytes_for(device, buffer.dtype, buffer.size);
    bytes[buffer.slot] = std::max(bytes[buffer.slot], needed);
  }
  for (size_t i = 0; i < slots.size(); i++) {
    if (!slots[i]) slots[i] = Buffer::make(device, bytes[i]);
  }
  for (const ScheduledBuffer& buffer : schedule.buffers) {
    if (buffer.kind != Kind::kTable) continue;
    std::vector<std::byte> content(bytes_of(buffer));
    bytes_of_bits(buffer.dtype, buffer.data, content);
    slots[buffer.slot]->copy_in(content);
  }
  return slots;
}

Array array_of(const Buffer& buffer, DType type) {
  std::vector<std::byte> bytes(buffer.bytes());
  buffer.copy_out(bytes);
  std::vector<uint64_t> bits = bits_of_bytes(type, bytes);
  const int64_t count = int64_t(bits.size());
  return Array::of_bits(type, {count}, std::move(bits));
}

Ref<Buffer> buffer_of(const Array& array, Device& device) {
  std::vector<std::byte> bytes(array.data.size() * size_t(array.dtype.item_bytes()));
  bytes_of_bits(array.dtype, array.data, bytes);
  Ref<Buffer> buffer = Buffer::make(device, bytes.size());
  buffer->copy_in(bytes);
  return buffer;
}

}  // namespace

void allocate_buffers(Imported& imported, Device& device) {
  for (ImportedBuffer& buffer : imported.buffers) {
    if (!buffer.memory) buffer.memory = Buffer::make(device, buffer.dtype, buffer.count);
  }
}

namespace {

// What these calls wrote in the memory of BUFFERs is there, and what it should become is not.
void lose_written(const Schedule& schedule, std::span<const KernelCall> calls,
                  const Imported& imported, const Slots& slots) {
  const auto is_written_by = [&](const KernelCall& call, const Buffer* memory) {
    const std::span written = std::span(call.arguments).first(call.written);
    return std::any_of(written.begin(), written.end(), [&](uint32_t argument) {
      return slots[schedule.buffers[argument].slot].get() == memory;
    });
  };
  const std::lock_guard lock(graph_mutex());
  for (const ImportedBuffer& buffer : imported.buffers) {
    const bool is_lost = std::any_of(calls.begin(), calls.end(), [&](const KernelCall& call) {
      return is_written_by(call, buffer.memory.get());
    });
    if (is_lost) buffer.memory->lose();
  }
}

}  // namespace

std::vector<Ref<Buffer>> run_schedule(const Schedule& schedule, const PreparedSchedule& prepared,
                                      const Imported& imported) {
  const Slots slots = allocate_slots(schedule, imported, *prepared.device);
  std::vector<Ref<Buffer>> outputs;
  outputs.reserve(schedule.outputs.size());
  for (const uint32_t output : schedule.outputs) {
    outputs.push_back(slots[schedule.buffers[output].slot]);
  }
  SmallVector<Buffer*, 16> arguments;
  SmallVector<int64_t, 8> variables;
  size_t done = 0;
  try {
    for (const KernelCall& call : schedule.calls) {
      uint64_t bytes = 0;
      arguments.clear();
      for (const uint32_t argument : call.arguments) {
        const ScheduledBuffer& buffer = schedule.buffers[argument];
        arguments.push_back(slots[buffer.slot].get());
        bytes += bytes_of(buffer);
      }
      variables.clear();
      for (const BoundVariable& variable : call.variables) variables.push_back(variable.value);
      const PreparedKernel& kernel = prepared.kernels[call.kernel];
      const uint64_t flops = kernel.flops.count(variables);
      const uint64_t begin = shows(2) ? now_ns() : 0;
      kernel.program->run(arguments, variables);
      if (shows(2)) {
        prepared.device->synchronize();
        const uint64_t time = now_ns() - begin;
        show_run(
            {prepared.device->name(), call.name, time, bytes, flops, kernel_operations(call.ast)});
      }
      count_kernel(bytes, flops);
      done++;
    }
  } catch (...) {
    lose_written(schedule, std::span(schedule.calls).first(done), imported, slots);
    throw;
  }
  return outputs;
}

std::vector<Ref<Buffer>> run_reference(const Imported& imported, Device& device) {
  Bindings bindings;
  for (UOp n : toposort(imported.sink)) {
    if (!n.is(Op::BUFFER)) continue;
    const Buffer& memory = *imported.buffers[size_t(n.number())].memory;
    bindings.buffers[n.number()] = array_of(memory, n.dtype());
  }
  std::vector<Ref<Buffer>> outputs;
  for (const Array& array : evaluate(imported.sink, bindings)) {
    outputs.push_back(buffer_of(array, device));
  }
  for (size_t i = 0; i < outputs.size(); i++) {
    count_kernel(outputs[i]->bytes(), i == 0 ? tensor_flops(imported.sink) : 0);
  }
  return outputs;
}

}  // namespace weft
