// Roots to a closure, a graph, a schedule, kernels run, and slots filled.
#include "engine/realize.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/at_fork.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/phases.h"
#include "base/ref.h"
#include "engine/custom_kernels.h"
#include "engine/explain.h"
#include "engine/index_checks.h"
#include "engine/prepare_schedule.h"
#include "engine/run_schedule.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "rewrite/trace.h"
#include "rewrite/user_passes.h"
#include "runtime/buffer.h"
#include "runtime/counters.h"
#include "runtime/debug.h"
#include "runtime/device.h"
#include "runtime/kernel_cache.h"
#include "runtime/kernel_flops.h"
#include "schedule/schedule.h"
#include "schedule/schedule_cache.h"
#include "value/closure.h"
#include "value/custom_kernel.h"
#include "value/import.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/value.h"
#include "weft/scheduled_kernel.h"

namespace weft {

InterruptibleMutex& realize_mutex() {
  static InterruptibleMutex mutex;
  return mutex;
}

namespace {

// A fork waits for what other threads realise: the child has none of them to finish it.
bool tell_forks() noexcept {
  at_fork(
      ForkOrder::kEngine,
      [] {
        realize_mutex().lock();
        graph_mutex().lock();
      },
      [] {
        graph_mutex().unlock();
        realize_mutex().unlock();
      });
  return true;
}
[[maybe_unused]] const bool kLockIsKnownToForks = tell_forks();

thread_local bool is_reference_only = false;

}  // namespace

bool schedules_are_used() { return config().schedule != 0 && !is_reference_only; }
void set_reference_only(bool is_only) { is_reference_only = is_only; }

namespace {

using Garbage = std::vector<Ref<Value>>;

void fill(Value& value, Ref<Buffer> buffer, Garbage& garbage) {
  std::array<Ref<Value>, Value::kMostSources> released;
  value.fill(std::move(buffer), released);
  for (Ref<Value>& source : released) {
    if (source) garbage.push_back(std::move(source));
  }
}

// The cache on disk. It is looked up for every schedule that is not in memory.
class DiskStore : public ScheduleStore {
 public:
  std::optional<std::vector<std::byte>> get(const Hash128& key) override {
    return kernel_cache()->get(key);
  }
  void put(const Hash128& key, std::span<const std::byte> bytes) override {
    kernel_cache()->put(key, bytes);
  }
  void remove(const Hash128& key) override { kernel_cache()->remove(key); }
};

std::shared_ptr<const Schedule> schedule_of(const Imported& imported, Device& device,
                                            OutputMemory outputs,
                                            ServedSizes sizes = ServedSizes::kAny) {
  const PhaseTimer timer(Phase::kLookup);
  const bool is_explained = is_explaining();
  const uint64_t begin = shows(2) || is_explained ? now_ns() : 0;
  const uint64_t misses = schedule_cache_counts().misses;
  Trace trace;
  std::string why_made;
  DiskStore disk;
  auto schedule =
      cached_schedule(imported.sink, {.limits = device.limits(),
                                      .device = device.name(),
                                      .dying = imported.dying,
                                      .outputs = outputs,
                                      .work_in = WorkIn::kGraphArena,
                                      .trace = shows(6) || is_explained ? &trace : nullptr,
                                      .origins = imported.origins.get(),
                                      .why_made = &why_made,
                                      .store = device.keeps_schedules() ? &disk : nullptr,
                                      .sizes = sizes});
  const bool is_new = schedule_cache_counts().misses != misses;
  if (is_new) count_schedule();
  if (is_explained) {
    if (is_new && why_made.empty()) why_made = "no schedule of this graph is known";
    const uint64_t taken = now_ns() - begin;
    explain_schedule({imported, *schedule, trace, device.name(), why_made, begin, taken});
  }
  if (shows(6)) show_passes(trace);
  if (shows(2)) show_schedule(imported.sink, *schedule, is_new, now_ns() - begin);
  return schedule;
}

CompiledSchedule compiled(std::shared_ptr<const Schedule> schedule, Device& device) {
  const PhaseTimer timer(Phase::kBind);
  const uint64_t begin = is_explaining() ? now_ns() : 0;
  std::shared_ptr<const PreparedSchedule> prepared = prepare_schedule(*schedule, device);
  if (begin != 0) explain_programs(*schedule, *prepared, begin);
  return {std::move(schedule), std::move(prepared)};
}

}  // namespace

CompiledSchedule compiled_schedule_of(const Imported& imported, Device& device,
                                      OutputMemory outputs) {
  std::shared_ptr<const Schedule> schedule = schedule_of(imported, device, outputs);
  if (!schedule->formulas) return compiled(std::move(schedule), device);
  const auto for_these_sizes = [&] {
    return compiled(schedule_of(imported, device, outputs, ServedSizes::kOwn), device);
  };
  try {
    return compiled(std::move(schedule), device);
  } catch (const CompileError&) {
    return for_these_sizes();
  } catch (const DeviceError&) {
    return for_these_sizes();
  }
}

namespace {

// Memory that holds the Value as it is: its own when it has no elements, or that of what it is
// another shape of.
Ref<Buffer> memory_at_hand(const Value& value) {
  if (value.numel() == 0) return Buffer::make(value.device(), 0);
  const Value* of = &value;
  while (!of->is_filled() && kSameElements.has(of->op())) {
    of = of->sources()[0].get();
  }
  if (!of->is_filled() || of->buffer()->is_seen_outside()) return {};
  return of->buffer();
}

// The staged Value that this one is another shape of: computed, it is at hand. Else itself.
Value* staged_at_hand(Value& value) {
  Value* of = &value;
  while (!of->is_filled() && kSameElements.has(of->op())) of = of->sources()[0].get();
  return of->is_staged() && !of->is_filled() ? of : &value;
}

std::vector<ScheduledKernel> describe(const CompiledSchedule& compiled) {
  const auto& [made, prepared] = compiled;
  const Schedule& schedule = *made;
  std::vector<ScheduledKernel> kernels;
  for (const KernelCall& call : schedule.calls) {
    ScheduledKernel kernel{.name = call.name, .graph = print(call.ast)};
    kernel.buffers = call.arguments.size();
    for (const uint32_t argument : call.arguments) {
      const ScheduledBuffer& buffer = schedule.buffers[argument];
      kernel.bytes += uint64_t(buffer.size) * uint64_t(buffer.dtype.item_bytes());
    }
    std::vector<int64_t> variables;
    variables.reserve(call.variables.size());
    for (const BoundVariable& variable : call.variables) variables.push_back(variable.value);
    kernel.flops = prepared->kernels[call.kernel].flops.count(variables);
    kernel.source = prepared->kernels[call.kernel].program->source(call.ast);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// Without a schedule every output counts as one kernel, all of which the evaluator runs at once.
std::vector<ScheduledKernel> describe_reference(const Imported& imported) {
  std::vector<ScheduledKernel> kernels;
  for (const Value* output : imported.outputs) {
    const UOp root = imported.sink.src(kernels.size());
    const uint64_t bytes = uint64_t(output->numel()) * uint64_t(output->dtype().item_bytes());
    kernels.push_back({.name = "evaluate",
                       .graph = print(root),
                       .buffers = imported.buffers.size() + 1,
                       .bytes = bytes,
                       .flops = kernels.empty() ? tensor_flops(imported.sink) : 0});
  }
  return kernels;
}

// One realise on one device.
class Job {
 public:
  // The roots and all beneath them, seen at one moment.
  explicit Job(std::span<Storage* const> storages) {
    const PhaseTimer timer(Phase::kImport);
    std::unique_lock lock(graph_mutex());
    for (auto waiting = waiting_in(storages); !waiting.empty(); waiting = waiting_in(storages)) {
      lock.unlock();
      Closure::open_calls(waiting);
      lock.lock();
    }
    std::vector<Value*> roots;
    for (Storage* storage : storages) {
      Ref<Value> version = storage->version_locked();
      if (version->is_filled()) continue;
      if (Ref<Buffer> memory = memory_at_hand(*version)) {
        fill(*version, std::move(memory), garbage_);
        continue;
      }
      roots_.emplace_back(staged_at_hand(*version));
      roots.push_back(roots_.back().get());
    }
    if (roots.empty()) return;
    device_ = &roots[0]->device();
    closure_ = std::make_unique<Closure>(roots);
    closure_->drop_pending();
    closure_->decide();
  }

  // What is to be copied from other devices before this can run.
  std::vector<Ref<Value>> copies() const {
    std::vector<Ref<Value>> copies;
    if (!closure_) return copies;
    for (Value* copy : closure_->copies()) copies.emplace_back(copy);
    return copies;
  }

  size_t count_kernels() {
    if (!closure_) return 0;
    const Imported imported = import_values(*closure_);
    return uses_schedule() ? schedule_of(imported, *device_, OutputMemory::kShared)->calls.size()
                           : imported.outputs.size();
  }

  std::vector<ScheduledKernel> kernels() {
    if (!closure_) return {};
    const Imported imported = import_values(*closure_);
    return uses_schedule()
               ? describe(compiled_schedule_of(imported, *device_, OutputMemory::kShared))
               : describe_reference(imported);
  }

  // The node of the only root; none where it is, or will be, in memory.
  std::optional<Graph> graph() {
    if (!closure_) return {};
    const Imported imported = import_values(*closure_);
    const auto at = std::find(imported.outputs.begin(), imported.outputs.end(), roots_[0].get());
    if (at == imported.outputs.end()) return {};  // staged: memory, for what reads it
    return Graph{imported.arena, imported.sink.src(size_t(at - imported.outputs.begin()))};
  }

  void run() {
    if (!closure_) return;
    Imported imported = import_values(*closure_);
    // What is needed to publish is there before anything runs.
    const size_t filled = imported.outputs.size() + imported.checks.size();
    garbage_.reserve(garbage_.size() + filled * Value::kMostSources);
    std::vector<Ref<Buffer>> outputs;
    if (uses_schedule()) {
      const auto [schedule, prepared] =
          compiled_schedule_of(imported, *device_, OutputMemory::kShared);
      const PhaseTimer timer(Phase::kRun);
      allocate_buffers(imported, *device_);
      outputs = run_schedule(*schedule, *prepared, imported);
    } else {
      allocate_buffers(imported, *device_);
      outputs = run_reference(imported, *device_);
    }
    divide_checks(imported, outputs, *device_);
    if (const std::string* failure = publish(imported, outputs)) throw IndexError(*failure);
  }

 private:
  static bool uses_schedule() { return schedules_are_used(); }

  static std::vector<Ref<Value>> waiting_in(std::span<Storage* const> storages) {
    std::vector<Value*> versions;
    for (Storage* storage : storages) versions.push_back(storage->version_locked().get());
    return Closure::waiting_beneath(versions);
  }

  // What was asked for and has failed: why.
  const std::string* publish(const Imported& imported, std::span<Ref<Buffer>> outputs) {
    const std::lock_guard lock(graph_mutex());
    const std::string* const failure = mark_failures(*closure_, imported, outputs);
    if (uses_schedule()) {
      for (const int64_t id : imported.dying)
        imported.buffers[size_t(id)].memory->next_generation();
    }
    for (const ImportedBuffer& buffer : imported.buffers) {
      if (buffer.value != nullptr) fill(*buffer.value, buffer.memory, garbage_);
    }
    for (size_t i = 0; i < outputs.size(); i++) {
      fill(*imported.outputs[i], std::move(outputs[i]), garbage_);
    }
    return failure;
  }

  Garbage garbage_;  // freed last
  std::vector<Ref<Value>> roots_;
  std::unique_ptr<Closure> closure_;
  Device* device_ = nullptr;
};

// The storages of each device, in the order given.
std::vector<std::vector<Storage*>> by_device(std::span<Storage* const> storages) {
  std::vector<std::vector<Storage*>> groups;
  for (Storage* storage : storages) {
    const auto at = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return &group[0]->device() == &storage->device();
    });
    if (at != groups.end()) {
      at->push_back(storage);
    } else {
      groups.push_back({storage});
    }
  }
  return groups;
}

using Storages = std::vector<Ref<Storage>>;

std::vector<Storage*> pointers_to(const Storages& storages) {
  std::vector<Storage*> pointers;
  for (const Ref<Storage>& storage : storages) pointers.push_back(storage.get());
  return pointers;
}

// What a staged Value is computed from.
std::span<const Ref<Value>> sources_of_staged(const Value& value) {
  if (const CustomKernel* kernel = value.custom_kernel()) return kernel->inputs;
  return value.sources();
}

Storages storages_of_sources(std::span<const Ref<Value>> copies) {
  Storages storages;
  for (const Ref<Value>& copy : copies) {
    for (const Ref<Value>& source : sources_of_staged(*copy)) {
      storages.push_back(Storage::make(source));
    }
  }
  return storages;
}

// Copies what is in memory on another device.
void fill_copy(Value& copy, const Storage& source, Garbage& garbage) {
  const Ref<Buffer> from = source.memory();
  Ref<Buffer> to = Buffer::make(copy.device(), from->bytes());
  to->copy_from(*from);
  const std::lock_guard lock(graph_mutex());
  fill(copy, std::move(to), garbage);
}

// Runs a kernel of a user on what these hold, where another output has not done so.
void fill_called(Value& value, std::span<const Ref<Storage>> inputs, Garbage& garbage) {
  CustomKernel& kernel = *value.custom_kernel();
  if (kernel.results.empty()) {
    std::vector<Ref<Buffer>> memory;
    for (const Ref<Storage>& input : inputs) memory.push_back(input->memory());
    kernel.results = run_custom_kernel(kernel, value.device(), memory);
    for (Ref<Value>& input : kernel.inputs) garbage.push_back(std::move(input));
    kernel.inputs.clear();
  }
  const std::lock_guard lock(graph_mutex());
  fill(value, std::move(kernel.results[size_t(value.numbers()[0])]), garbage);
}

// Storages to realise, and then Values to make of what they hold.
struct Stage {
  Storages storages;
  std::vector<Ref<Value>> copies;
  std::vector<size_t> source_counts;  // of each
};

// Runs one device after the other, up to one that has something to be copied first.
std::vector<Ref<Value>> run_up_to_copies(std::span<Storage* const> storages) {
  for (const std::vector<Storage*>& group : by_device(storages)) {
    Job job(group);
    std::vector<Ref<Value>> copies = job.copies();
    if (!copies.empty()) return copies;
    job.run();
  }
  return {};
}

void run_copies(std::vector<Ref<Value>> first) {
  Garbage garbage;
  std::vector<Stage> stages;
  const auto push = [&](std::vector<Ref<Value>> copies) {
    Storages storages = storages_of_sources(copies);
    std::vector<size_t> counts;
    counts.reserve(copies.size());
    for (const Ref<Value>& copy : copies) counts.push_back(sources_of_staged(*copy).size());
    stages.push_back({std::move(storages), std::move(copies), std::move(counts)});
  };
  push(std::move(first));
  while (!stages.empty()) {
    std::vector<Ref<Value>> more = run_up_to_copies(pointers_to(stages.back().storages));
    if (!more.empty()) {
      push(std::move(more));
      continue;
    }
    const Stage& stage = stages.back();
    std::span<const Ref<Storage>> rest = stage.storages;
    for (size_t i = 0; i < stage.copies.size(); i++) {
      Value& copy = *stage.copies[i];
      const auto sources = rest.first(stage.source_counts[i]);
      rest = rest.subspan(sources.size());
      if (copy.is_filled()) continue;
      if (copy.is(Op::KERNEL)) {
        fill_called(copy, sources, garbage);
      } else {
        fill_copy(copy, *sources[0], garbage);
      }
    }
    stages.pop_back();
  }
}

// What realising storages takes: those of each stage, after the kernels of users that it needs.
struct Listed {
  Storages storages;
  std::vector<Ref<Value>> called;  // one output of each kernel
};

std::vector<Ref<Value>> not_yet_called(std::span<const Ref<Value>> staged) {
  std::vector<Ref<Value>> called;
  for (const Ref<Value>& value : staged) {
    const CustomKernel* const kernel = value->custom_kernel();
    if (kernel == nullptr || !kernel->results.empty()) continue;
    const bool is_known = std::ranges::any_of(
        called, [&](const Ref<Value>& other) { return other->custom_kernel() == kernel; });
    if (!is_known) called.push_back(value);
  }
  return called;
}

// use(Job) and call(Value of a kernel) for all that realising these takes, in the order of runs.
template <class Use, class Call>
void for_each_job(std::span<Storage* const> storages, Use&& use, Call&& call) {
  std::vector<Listed> stages;
  Storages next;
  for (Storage* storage : storages) next.emplace_back(storage);
  while (!next.empty()) {
    std::vector<Ref<Value>> copies;
    for (const std::vector<Storage*>& group : by_device(pointers_to(next))) {
      for (Ref<Value>& copy : Job(group).copies()) copies.push_back(std::move(copy));
    }
    stages.push_back({std::move(next), not_yet_called(copies)});
    next = storages_of_sources(copies);
  }
  for (size_t i = stages.size(); i-- > 0;) {
    for (const Ref<Value>& value : stages[i].called) call(*value);
    for (const std::vector<Storage*>& group : by_device(pointers_to(stages[i].storages))) {
      use(Job(group));
    }
  }
}

}  // namespace

namespace {

void run_all(std::span<Storage* const> storages) {
  for (;;) {
    std::vector<Ref<Value>> copies = run_up_to_copies(storages);
    if (copies.empty()) return;
    run_copies(std::move(copies));
  }
}

bool is_all_realized(std::span<Storage* const> storages) {
  return std::ranges::all_of(storages, [](const Storage* s) { return s->is_realized(); });
}

// Writes that have waited for that many realises, and that none of them needed, are done on their
// own: what a program keeps up to date and never looks at would grow for ever.
constexpr uint64_t kMostRealises = 16;

void run_waiting() {
  for (const Ref<Storage>& storage : Storage::take_waiting(kMostRealises)) {
    if (shows(2)) {
      show(fmt::format("flush   writes that waited for {} realises: done now", kMostRealises));
    }
    Storage* const one[] = {storage.get()};
    try {
      run_all(one);
    } catch (const std::exception& e) {  // told to whoever reads it
      if (shows(2)) show(fmt::format("flush   they failed: {}", e.what()));
    }
  }
}

}  // namespace

void realize(std::span<Storage* const> storages) {
  if (is_in_user_pass()) {
    throw Error("[realize] a pass of a user is running: it cannot wait for values of tensors");
  }
  refuse_values_while_captured();
  interruptible([&] {
    const std::lock_guard lock(realize_mutex());
    if (is_all_realized(storages)) return;
    run_all(storages);
    run_waiting();
  });
}

namespace {

Graph graph_of_storage(Storage& storage) {
  const std::lock_guard lock(realize_mutex());
  Storage* const one[] = {&storage};
  if (std::optional<Graph> graph = Job(one).graph()) return *graph;
  auto arena = std::make_shared<Arena>();
  const Ref<Value> version = storage.version();
  const UOp memory =
      buffer(*arena, version->dtype(), version->numel(), version->device().name(), 0);
  const std::vector<Dim> sizes(version->shape().begin(), version->shape().end());
  return {arena, reshape(memory, sizes)};
}

std::vector<ScheduledKernel> kernels_of(std::span<Storage* const> storages) {
  const std::lock_guard lock(realize_mutex());
  std::vector<ScheduledKernel> kernels;
  for_each_job(
      storages,
      [&](Job job) {
        for (ScheduledKernel& kernel : job.kernels()) kernels.push_back(std::move(kernel));
      },
      [&](const Value& called) {
        kernels.push_back(describe_custom_kernel(*called.custom_kernel(), called.device()));
      });
  return kernels;
}

size_t count_kernels_of(std::span<Storage* const> storages) {
  const std::lock_guard lock(realize_mutex());
  size_t count = 0;
  for_each_job(
      storages, [&](Job job) { count += job.count_kernels(); }, [&](const Value&) { count++; });
  return count;
}

}  // namespace

Graph graph_to_realize(Storage& storage) {
  return interruptible([&] { return graph_of_storage(storage); });
}

std::vector<ScheduledKernel> kernels_to_realize(std::span<Storage* const> storages) {
  return interruptible([&] { return kernels_of(storages); });
}

size_t count_kernels_to_realize(std::span<Storage* const> storages) {
  return interruptible([&] { return count_kernels_of(storages); });
}

}  // namespace weft
