// Slots to buffers, then call after call.
#include "engine/run_schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/ref.h"
#include "base/small_vector.h"
#include "engine/explain.h"
#include "engine/prepare_schedule.h"
#include "engine/undo_log.h"
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
    if (buffer.memory) continue;
    buffer.memory = Buffer::make(device, buffer.dtype, buffer.count);
    buffer.is_new = true;
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

// Which slots have memory with something of the program's in it.
SmallVector<bool, 64> slots_of_program(const Schedule& schedule, const Imported& imported) {
  SmallVector<bool, 64> is_programs(schedule.slot_count);
  for (const ScheduledBuffer& buffer : schedule.buffers) {
    if (buffer.kind != ScheduledBuffer::Kind::kInput) continue;
    is_programs[buffer.slot] = !imported.buffers[size_t(buffer.id)].is_new;
  }
  return is_programs;
}

struct Work {
  uint64_t bytes = 0, flops = 0;
};

// The calls of a schedule, one after the other.
class Run {
 public:
  Run(const Schedule& schedule, const PreparedSchedule& prepared, const Imported& imported,
      const Slots& slots)
      : schedule_(schedule), prepared_(prepared), imported_(imported), slots_(slots) {
    if (schedule.calls.size() > 1) is_programs_ = slots_of_program(schedule, imported);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void run() {
    size_t done = 0;
    try {
      for (; done < schedule_.calls.size(); done++) run_call(done);
    } catch (const Stopped&) {
      undo_log_.undo();
      throw;
    } catch (...) {
      lose_written(schedule_, std::span(schedule_.calls).first(done), imported_, slots_);
      throw;
    }
  }

 private:
  void run_call(size_t i) {
    const KernelCall& call = schedule_.calls[i];
    if (undo_log_.is_whole()) {
      check_interrupt();
      note_writes(i);
    }
    arguments_.clear();
    for (const uint32_t argument : call.arguments) {
      arguments_.push_back(slots_[schedule_.buffers[argument].slot].get());
    }
    const Work work = prepare(call);
    const bool is_explained = is_explaining();
    const uint64_t begin = shows(2) || is_explained ? now_ns() : 0;
    prepared_.kernels[call.kernel].program->run(arguments_, variables_);
    if (shows(2) || is_explained) {
      Device& device = *prepared_.device;
      device.synchronize();
      const uint64_t taken = now_ns() - begin;
      const double least = least_nanoseconds(device.limits().machine, work.bytes, work.flops);
      if (shows(2)) {
        show_run({device.name(), call.name, taken, work.bytes, work.flops, least,
                  kernel_operations(call.ast), text_of_sites(call.sites)});
      }
      if (is_explained) explain_run(schedule_, i, {begin, taken, work.bytes, work.flops, least});
    }
    count_kernel(work.bytes, work.flops);
  }

  // Sets `variables_`.
  Work prepare(const KernelCall& call) {
    Work work;
    for (const uint32_t argument : call.arguments) {
      work.bytes += bytes_of(schedule_.buffers[argument]);
    }
    variables_.clear();
    for (const BoundVariable& variable : call.variables) variables_.push_back(variable.value);
    work.flops = prepared_.kernels[call.kernel].flops.count(variables_);
    return work;
  }

  // Before call i.
  void note_writes(size_t i) {
    if (i + 1 == schedule_.calls.size()) return;  // nothing is stopped any more
    const KernelCall& call = schedule_.calls[i];
    for (const uint32_t written : std::span(call.arguments).first(call.written)) {
      const uint32_t slot = schedule_.buffers[written].slot;
      if (is_programs_[slot]) undo_log_.will_write(*slots_[slot], seconds_after(i));
    }
  }

  double seconds_after(size_t i) {
    if (!seconds_after_) {
      seconds_after_.emplace(schedule_.calls.size());
      for (size_t j = schedule_.calls.size() - 1; j > i; j--) {
        const Work work = prepare(schedule_.calls[j]);
        (*seconds_after_)[j - 1] = (*seconds_after_)[j] + seconds_of_work(work.bytes, work.flops);
      }
    }
    return (*seconds_after_)[i];
  }

  const Schedule& schedule_;
  const PreparedSchedule& prepared_;
  const Imported& imported_;
  const Slots& slots_;
  SmallVector<bool, 64> is_programs_;  // by slot; none where no call is after another
  UndoLog undo_log_;
  std::optional<std::vector<double>> seconds_after_;  // each call, from the first that asks on
  SmallVector<Buffer*, 16> arguments_;
  SmallVector<int64_t, 8> variables_;
};

}  // namespace

std::vector<Ref<Buffer>> run_schedule(const Schedule& schedule, const PreparedSchedule& prepared,
                                      const Imported& imported) {
  const Slots slots = allocate_slots(schedule, imported, *prepared.device);
  if (is_explaining()) explain_slots(schedule, slots);
  std::vector<Ref<Buffer>> outputs;
  outputs.reserve(schedule.outputs.size());
  for (const uint32_t output : schedule.outputs) {
    outputs.push_back(slots[schedule.buffers[output].slot]);
  }
  Run(schedule, prepared, imported, slots).run();
  for (size_t i = 0; i < schedule.output_firsts.size(); i++) {
    if (!schedule.output_firsts[i]) continue;
    const ScheduledBuffer& whole = schedule.buffers[schedule.outputs[i]];
    const auto width = size_t(whole.dtype.item_bytes());
    outputs[i] = Buffer::make_part(outputs[i], size_t(*schedule.output_firsts[i]) * width,
                                   size_t(imported.outputs[i]->numel()) * width);
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
