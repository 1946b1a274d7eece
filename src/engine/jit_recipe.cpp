// The loop over the calls: nothing is looked up and nothing allocated in it.
#include "engine/jit_recipe.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/ref.h"
#include "base/small_vector.h"
#include "engine/explain.h"
#include "engine/undo_log.h"
#include "runtime/buffer.h"
#include "runtime/counters.h"
#include "runtime/debug.h"
#include "runtime/device.h"
#include "runtime/program.h"
#include "schedule/schedule.h"
#include "value/storage.h"

namespace weft {

JitRecipe::~JitRecipe() {
  for (const Binding& b : bindings) {
    if (b.captured) b.captured->remove_capture();
  }
}

namespace {

void lose_written(const JitRecipe& recipe, size_t calls, std::span<const Ref<Buffer>> memory) {
  const std::lock_guard lock(graph_mutex());
  for (size_t i = 0; i < calls; i++) {
    const JitRecipe::Call& call = recipe.calls[i];
    for (uint32_t a = 0; a < call.written; a++) {
      const uint32_t slot = recipe.arguments[call.first_argument + a];
      if (slot < recipe.bindings.size()) memory[slot]->lose();
    }
  }
}

// Whose calls they all are; null: of several, or there are none.
Device* device_of(const JitRecipe& recipe, std::span<const Ref<Buffer>> memory) {
  Device* found = nullptr;
  for (const JitRecipe::Call& call : recipe.calls) {
    for (uint32_t a = 0; a < call.argument_count; a++) {
      Device* const device = &memory[recipe.arguments[call.first_argument + a]]->device();
      if (found != nullptr && device != found) return nullptr;
      found = device;
    }
  }
  return found;
}

void record(const JitRecipe& recipe, std::span<const Ref<Buffer>> memory) {
  Device* const device = recipe.calls.size() < 2 ? nullptr : device_of(recipe, memory);
  if (device == nullptr) return;
  std::vector<RecordedCall> calls;
  calls.reserve(recipe.calls.size());
  for (const JitRecipe::Call& call : recipe.calls) {
    calls.push_back(
        {call.program,
         std::span(recipe.arguments).subspan(call.first_argument, call.argument_count),
         std::span(recipe.numbers.variables).subspan(call.first_variable, call.variable_count)});
  }
  recipe.recording = device->record(calls);
}

// False: the device cannot run it so, and has done nothing.
bool run_recording(const JitRecipe& recipe, std::span<const Ref<Buffer>> memory) {
  SmallVector<Buffer*, 64> pointers;
  for (const Ref<Buffer>& each : memory) pointers.push_back(each.get());
  try {
    recipe.recording->run({pointers.data(), pointers.size()});
  } catch (const DeviceError&) {  // no memory for it, or worse: then the calls say so
    recipe.recording.reset();
    return false;
  }
  const JitNumbers& numbers = recipe.numbers;
  for (size_t i = 0; i < recipe.calls.size(); i++) count_kernel(numbers.bytes[i], numbers.flops[i]);
  return true;
}

void make_memory(const JitRecipe& recipe, const JitNumbers& numbers,
                 std::vector<Ref<Buffer>>& memory) {
  memory.resize(recipe.slot_count());
  for (size_t i = 0; i < recipe.slots.size(); i++) {
    Ref<Buffer>& own = memory[recipe.bindings.size() + i];
    if (own) continue;
    const Ref<Buffer>& held = numbers.held[i];
    own = held ? held : Buffer::make(*recipe.slots[i].device, numbers.slot_bytes[i]);
  }
}

// Before its calls write to bindings, while they can be undone.
class Writes {
 public:
  Writes(const JitRecipe& recipe, const JitNumbers& numbers, std::span<const Ref<Buffer>> memory)
      : recipe_(recipe), numbers_(numbers), memory_(memory) {}
  Writes(const Writes&) = delete;
  Writes& operator=(const Writes&) = delete;

  // Throws Stopped.
  void before(size_t number) {
    if (!undo_log_.is_whole()) return;
    check_interrupt();
    if (number + 1 == recipe_.calls.size()) return;  // nothing is stopped any more
    const JitRecipe::Call& call = recipe_.calls[number];
    for (uint32_t a = 0; a < call.written; a++) {
      const uint32_t slot = recipe_.arguments[call.first_argument + a];
      if (slot < recipe_.bindings.size()) undo_log_.will_write(*memory_[slot], rest(number));
    }
  }
  void undo() { undo_log_.undo(); }

 private:
  // Seconds that the calls after this one take.
  double rest(size_t number) {
    if (rests_.empty()) {
      rests_.resize(recipe_.calls.size());
      for (size_t i = rests_.size() - 1; i > number; i--) {
        rests_[i - 1] = rests_[i] + seconds_of_work(numbers_.bytes[i], numbers_.flops[i]);
      }
    }
    return rests_[number];
  }

  const JitRecipe& recipe_;
  const JitNumbers& numbers_;
  std::span<const Ref<Buffer>> memory_;
  UndoLog undo_log_;
  std::vector<double> rests_;  // of calls, from the first that writes on
};

void tell_run(const JitRecipe::Call& call, Device& device, uint64_t begin, uint64_t bytes,
              uint64_t flops) {
  device.synchronize();
  const uint64_t taken = now_ns() - begin;
  const double least = least_nanoseconds(device.limits().machine, bytes, flops);
  if (shows(2)) {
    show_run({device.name(), call.name, taken, bytes, flops, least, call.operations});
  }
  if (is_explaining()) {
    explain_run(*call.program, call.name, call.operations, {begin, taken, bytes, flops, least});
  }
}

void run_calls(const JitRecipe& recipe, const JitNumbers& numbers, std::vector<Ref<Buffer>>& memory,
               size_t first_call) {
  make_memory(recipe, numbers, memory);
  SmallVector<Buffer*, 16> arguments;
  size_t done = first_call;
  Writes writes(recipe, numbers, memory);
  try {
    for (; done < recipe.calls.size(); done++) {
      const JitRecipe::Call& call = recipe.calls[done];
      writes.before(done);
      arguments.clear();
      for (uint32_t a = 0; a < call.argument_count; a++) {
        arguments.push_back(memory[recipe.arguments[call.first_argument + a]].get());
      }
      const bool is_timed = shows(2) || is_explaining();
      const uint64_t begin = is_timed ? now_ns() : 0;
      call.program->run(arguments, std::span(numbers.variables.data() + call.first_variable,
                                             call.variable_count));
      if (is_timed) {
        tell_run(call, arguments[0]->device(), begin, numbers.bytes[done], numbers.flops[done]);
      }
      count_kernel(numbers.bytes[done], numbers.flops[done]);
    }
  } catch (const Stopped&) {
    writes.undo();
    throw;
  } catch (...) {
    lose_written(recipe, done, memory);
    throw;
  }
}

}  // namespace

void run_calls(const JitRecipe& recipe, std::vector<Ref<Buffer>>& memory, size_t first_call) {
  run_calls(recipe, recipe.numbers, memory, first_call);
}

void run_recipe(const JitRecipe& recipe, const JitNumbers& numbers,
                std::vector<Ref<Buffer>>& memory) {
  for (const Ref<Buffer>& each : memory) {  // before anything is written
    if (each) each->check_lender();
  }
  make_memory(recipe, numbers, memory);
  const bool is_own = &numbers == &recipe.numbers;  // what is recorded has them in it
  if (is_own && ++recipe.runs == 2) record(recipe, memory);
  const bool is_timed = shows(2) || is_explaining();
  if (is_own && recipe.recording && !is_timed && run_recording(recipe, memory)) return;
  run_calls(recipe, numbers, memory, 0);
}

}  // namespace weft
