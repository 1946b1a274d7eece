// The graph between placeholders and results, scheduled, and numbered.
#include "engine/jit_capture.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/ref.h"
#include "engine/custom_kernels.h"
#include "engine/explain.h"
#include "engine/index_checks.h"
#include "engine/jit_general.h"
#include "engine/jit_recipe.h"
#include "engine/prepare_schedule.h"
#include "engine/realize.h"
#include "ir/op.h"
#include "runtime/array_bytes.h"
#include "runtime/buffer.h"
#include "runtime/debug.h"
#include "runtime/device.h"
#include "runtime/kernel_operations.h"
#include "schedule/schedule.h"
#include "value/closure.h"
#include "value/custom_kernel.h"
#include "value/import.h"
#include "value/storage.h"
#include "value/storage_view.h"
#include "value/tape.h"
#include "value/training.h"
#include "value/value.h"
#include "weft/variable.h"

namespace weft {
namespace {

constexpr uint32_t kNone = JitRecipe::kNone;

// What others computed is not there to be captured.
struct Overtaken {};

// The filled Value that this one is another shape of; null when there is none.
const Value* value_at_hand(const Value& value) {
  const Value* of = &value;
  while (!of->is_filled() && kSameElements.has(of->op())) {
    of = of->sources()[0].get();
  }
  return of->is_filled() && !of->buffer()->is_seen_outside() ? of : nullptr;
}

class Maker {
 public:
  Maker(JitWatch& watch, std::span<const VariableValue> values)
      : watch_(watch), recipe_(std::make_unique<JitRecipe>()) {
    recipe_->values.assign(values.begin(), values.end());
  }

  // The lock of realise is held.
  std::shared_ptr<JitRecipe> run(std::span<const StorageView> outputs) {
    recipe_->default_device = &find_device({});
    recipe_->is_training = is_training();
    recipe_->has_gradients = gradients_are_on();
    add_bindings();
    add_inputs();
    add_outputs(outputs);
    add_gradients();
    {
      const std::lock_guard lock(graph_mutex());
      for (JitWatch::Bound& b : watch_.bound()) release_placeholder(b);
    }
    run_stages();
    fail_results();
    recipe_->runs = 1;
    return std::move(recipe_);
  }

 private:
  // The results on one device.
  struct Group {
    Device* device;
    std::vector<Value*> roots;
    std::vector<Ref<Value>> constants;
    std::unique_ptr<Closure> closure;
  };

  void add_bindings() {
    for (const JitWatch::Bound& b : watch_.bound()) {
      const Storage& s = *b.storage;
      recipe_->bindings.push_back({.captured = b.proxy ? Ref<Storage>() : b.storage,
                                   .device = &s.device(),
                                   .dtype = s.dtype(),
                                   .numel = s.numel(),
                                   .is_part = b.is_part,
                                   .is_overwritten = false,
                                   .result = kNone,
                                   .is_leaf = false});
      if (!b.proxy) b.storage->add_capture();
      if (b.is_written) recipe_->bindings.back().result = result_of(b.seen().version());
    }
  }

  void add_inputs() {
    for (size_t i = 0; i < watch_.proxies().size(); i++) {
      recipe_->inputs.push_back({watch_.binding_of_input()[i], watch_.proxies()[i].view});
    }
  }

  void add_outputs(std::span<const StorageView> outputs) {
    for (const StorageView& output : outputs) {
      const Storage& storage = *output.storage;
      JitRecipe::Output out{.binding = watch_.find(storage), .made = 0};
      if (out.binding == kNone) out.made = made_of(storage);
      recipe_->outputs.push_back(out);
      recipe_->numbers.views.push_back(output.view);
    }
  }

  // The number of a storage that the function made.
  uint32_t made_of(const Storage& storage) {
    const auto [at, is_new] = made_.try_emplace(&storage, uint32_t(recipe_->made.size()));
    if (is_new) {
      recipe_->made.push_back({result_of(storage.version())});
      recipe_->numbers.origins.push_back(storage.origin());
    }
    return at->second;
  }

  using Gradient = JitRecipe::Binding::Gradient;

  // What backward() collects is an output too.
  void add_gradients() {
    for (size_t i = 0; i < watch_.bound().size(); i++) {
      const JitWatch::Bound& b = watch_.bound()[i];
      JitRecipe::Binding& binding = recipe_->bindings[i];
      binding.is_leaf = b.seen().leaf_number() != 0;
      if (!binding.is_leaf) continue;
      const Ref<Storage> after = b.seen().gradient();
      binding.gradient_before = gradient_of(b.gradient.get());
      binding.gradient_after = gradient_of(after.get());
      if (after == b.gradient) {
        binding.gradient_after = {.kind = Gradient::Kind::kOther};
      } else if (binding.gradient_after.kind == Gradient::Kind::kOther) {
        binding.gradient_after = {.kind = Gradient::Kind::kMade, .number = made_of(*after)};
      }
    }
  }

  Gradient gradient_of(const Storage* storage) const {
    if (storage == nullptr) return {.kind = Gradient::Kind::kNone};
    const uint32_t binding = watch_.find(*storage);
    if (binding == kNone) return {.kind = Gradient::Kind::kOther};
    return {.kind = Gradient::Kind::kBinding, .number = binding};
  }

  // The number of the result that a Value is.
  uint32_t result_of(const Ref<Value>& value) {
    const auto [at, is_new] = result_numbers_.try_emplace(value.get(), uint32_t(results_.size()));
    if (is_new) {
      results_.push_back(value);
      recipe_->results.push_back({&value->device(), value->dtype(), kNone});
      recipe_->numbers.shapes.emplace_back(value->shape());
    }
    return at->second;
  }

  // Edges of the graph are all that is to hold the placeholders of what was written.
  void release_placeholder(JitWatch::Bound& b) {
    const auto number = uint32_t(&b - watch_.bound().data());
    if (b.is_written) {
      const bool is_used = b.placeholder->owners() > 1;
      if (is_used) known_.emplace(b.placeholder.get(), number);
      Ref<Value> dropped = std::move(b.placeholder);
    } else {
      known_.emplace(b.placeholder.get(), number);
    }
  }

  // ---- stages

  // Values to compute, and then outputs of kernels of users, which are called on them.
  struct Stage {
    std::vector<Value*> roots;
    std::vector<Ref<Value>> called;
  };

  // What a kernel of a user reads is computed in a stage before the one that reads what it writes.
  void run_stages() {
    std::vector<Stage> stages(1);
    for (const Ref<Value>& result : results_) stages[0].roots.push_back(result.get());
    while (!stages.empty()) {
      if (std::vector<Ref<Value>> called = close_groups(stages.back().roots); !called.empty()) {
        stages.push_back(stage_before(std::move(called)));
        continue;
      }
      for (Group& group : groups_) add_kernels(group);
      if (stages.size() == 1) watch_.settle();
      run_calls();
      groups_.clear();
      for (const Ref<Value>& value : stages.back().called) call(*value);
      stages.pop_back();
    }
  }

  // The groups of these; or none, and what is to be called before.
  std::vector<Ref<Value>> close_groups(std::span<Value* const> roots) {
    std::vector<Ref<Value>> called;
    Closure::open_calls_beneath(roots);
    const std::lock_guard lock(graph_mutex());
    for (Value* root : roots) add_root(*root);
    for (Group& group : groups_) {
      close(group);
      for (Value* value : group.closure->copies()) called.emplace_back(value);
    }
    if (!called.empty()) groups_.clear();
    return called;
  }

  static Stage stage_before(std::vector<Ref<Value>> called) {
    Stage stage;
    for (const Ref<Value>& value : called) {
      for (const Ref<Value>& input : value->custom_kernel()->inputs) {
        const bool is_known = std::ranges::find(stage.roots, input.get()) != stage.roots.end();
        if (!is_known) stage.roots.push_back(input.get());
      }
    }
    stage.called = std::move(called);
    return stage;
  }

  void add_root(Value& value) {
    if (value.is_filled() && value.buffer()->is_seen_outside()) throw Overtaken();
    const auto result = result_numbers_.find(&value);
    uint32_t unused = kNone;
    uint32_t& slot =
        result != result_numbers_.end() ? recipe_->results[result->second].slot : unused;
    if (slot != kNone) return;
    if (value.numel() == 0) {
      slot = add_slot(value.device(), 0);
    } else if (const Value* at_hand = value_at_hand(value)) {
      slot = slot_of_filled(*at_hand);
    } else {
      group_of(value.device()).roots.push_back(&value);
    }
  }

  Group& group_of(Device& device) {
    const auto at = std::ranges::find(groups_, &device, &Group::device);
    if (at != groups_.end()) return *at;
    groups_.push_back({.device = &device, .roots = {}, .constants = {}, .closure = {}});
    return groups_.back();
  }

  // The memory of a placeholder, or of what the function made from data.
  uint32_t slot_of_filled(const Value& value) {
    const auto known = known_.find(&value);
    if (known != known_.end()) return known->second;
    if (!value.is(Op::BUFFER)) throw Overtaken();
    return add_slot(value.device(), 0, value.buffer());
  }

  uint32_t add_slot(Device& device, size_t bytes, Ref<Buffer> held = {}) {
    recipe_->slots.push_back({&device});
    recipe_->numbers.slot_bytes.push_back(bytes);
    recipe_->numbers.held.push_back(std::move(held));
    return uint32_t(recipe_->slot_count() - 1);
  }

  void close(Group& group) {
    group.closure = std::make_unique<Closure>(group.roots);
    for (const Closure::Node& n : group.closure->nodes()) {
      if (n.is_filled && !known_.contains(n.value)) {
        if (!n.value->is(Op::BUFFER)) throw Overtaken();
        group.constants.emplace_back(n.value);  // kept for every run
      }
    }
    group.closure->drop_pending();
    group.closure->decide();
  }

  // ---- kernels

  void add_kernels(Group& group) {
    Imported imported = import_values(*group.closure, Sharing::kIgnored);
    auto [schedule, prepared] = compiled_schedule_of(imported, *group.device, OutputMemory::kOwn);
    recipe_->programs.push_back(std::move(prepared));
    if (schedule->use) recipe_->uses.push_back(schedule->use);
    const auto& uses = recipe_->programs.back()->uses;
    recipe_->uses.insert(recipe_->uses.end(), uses.begin(), uses.end());
    if (!recipe_->values.empty()) assume_legal(imported.sink, *schedule);
    const std::vector<uint32_t> slots = add_slots(imported, *schedule, *group.device);
    recipe_->groups.push_back({recipe_->values.empty() ? nullptr : schedule, recipe_->calls.size(),
                               recipe_->sized.size()});
    for (const ScheduledBuffer& b : schedule->buffers) add_sized(slots[b.slot], b.dtype, b.size);
    for (const KernelCall& call : schedule->calls) add_call(*schedule, call, slots);
    for (size_t i = 0; i < imported.outputs.size(); i++) {
      const uint32_t slot = slots[schedule->buffers[schedule->outputs[i]].slot];
      set_result(*imported.outputs[i], slot);
    }
    for (const IndexCheck& check : index_checks(*group.closure)) add_check(check, *group.closure);
    for (size_t i = 0; i < group.closure->nodes().size(); i++) pass_failures(*group.closure, i);
  }

  // What failed before, behind a kernel of a user, fails what is computed from it.
  void pass_failures(const Closure& closure, size_t place) {
    const auto failing = failing_.find(closure.nodes()[place].value);
    if (failing == failing_.end()) return;
    const std::vector<size_t> checks = failing->second;
    for (const Value* value : computed_from(closure, place)) {
      for (const size_t check : checks) add_failing(*value, check);
    }
  }

  void add_failing(const Value& value, size_t check) {
    std::vector<size_t>& checks = failing_[&value];
    if (std::ranges::find(checks, check) != checks.end()) return;
    checks.push_back(check);
    const auto known = result_numbers_.find(&value);
    if (known != result_numbers_.end()) recipe_->checks[check].results.push_back(known->second);
  }

  void add_check(const IndexCheck& check, const Closure& closure) {
    const size_t number = recipe_->checks.size();
    recipe_->checks.push_back({.slot = slot_of(*check.check), .of = check.of, .results = {}});
    for (const Value* value : computed_from(closure, check.place)) add_failing(*value, number);
  }

  uint32_t slot_of(const Value& value) {
    const auto other = std::ranges::find_if(
        others_, [&](const auto& computed) { return computed.first.get() == &value; });
    if (other != others_.end()) return other->second;
    const auto known = result_numbers_.find(&value);
    return known != result_numbers_.end() ? recipe_->results[known->second].slot
                                          : slot_of_filled(value);
  }

  // The slots of the recipe that those of the schedule are.
  std::vector<uint32_t> add_slots(const Imported& imported, const Schedule& schedule,
                                  Device& device) {
    using Kind = ScheduledBuffer::Kind;
    std::vector<uint32_t> of_buffer;  // of BUFFER i
    for (const ImportedBuffer& b : imported.buffers) {
      const size_t bytes = Buffer::bytes_for(device, b.dtype, b.count);
      of_buffer.push_back(b.memory ? slot_of_filled(*b.of) : add_slot(device, bytes));
      if (!b.memory) add_sized(of_buffer.back(), b.dtype, b.count);
      if (b.value != nullptr) set_result(*b.value, of_buffer.back());
    }
    for (const int64_t id : imported.dying) {
      const uint32_t slot = of_buffer[size_t(id)];
      if (slot < recipe_->bindings.size()) recipe_->bindings[slot].is_overwritten = true;
    }
    std::vector<uint32_t> slots(schedule.slot_count, kNone);
    std::vector<size_t> bytes(schedule.slot_count);
    for (const ScheduledBuffer& b : schedule.buffers) {
      if (b.kind == Kind::kInput) slots[b.slot] = of_buffer[size_t(b.id)];
      bytes[b.slot] = std::max(bytes[b.slot], Buffer::bytes_for(device, b.dtype, b.size));
    }
    for (size_t i = 0; i < slots.size(); i++) {
      if (slots[i] == kNone) slots[i] = add_slot(device, bytes[i]);
    }
    for (const ScheduledBuffer& b : schedule.buffers) {
      if (b.kind != Kind::kTable) continue;
      std::vector<std::byte> content(Buffer::bytes_for(device, b.dtype, b.size));
      bytes_of_bits(b.dtype, b.data, content);
      const size_t slot = slots[b.slot] - recipe_->bindings.size();
      Ref<Buffer>& held = recipe_->numbers.held[slot];
      held = Buffer::make(device, recipe_->numbers.slot_bytes[slot]);
      held->copy_in(content);
      recipe_->tables.push_back({uint32_t(slot), b.dtype, b.data});
    }
    return slots;
  }

  void add_sized(uint32_t slot, DType dtype, int64_t size) {
    const size_t bindings = recipe_->bindings.size();
    recipe_->sized.push_back({slot < bindings ? kNone : uint32_t(slot - bindings), dtype, size});
  }

  void add_call(const Schedule& schedule, const KernelCall& call, std::span<const uint32_t> slots) {
    const PreparedKernel& kernel = recipe_->programs.back()->kernels[call.kernel];
    JitRecipe::Call c{.program = kernel.program.get(),
                      .first_argument = uint32_t(recipe_->arguments.size()),
                      .argument_count = uint32_t(call.arguments.size()),
                      .written = uint32_t(call.written),
                      .first_variable = uint32_t(recipe_->numbers.variables.size()),
                      .variable_count = uint32_t(call.variables.size()),
                      .flops = &kernel.flops,
                      .name = {},
                      .operations = {}};
    JitNumbers& numbers = recipe_->numbers;
    uint64_t bytes = 0;
    for (const uint32_t argument : call.arguments) {
      const ScheduledBuffer& b = schedule.buffers[argument];
      recipe_->arguments.push_back(slots[b.slot]);
      recipe_->argument_sizes.push_back(uint32_t(recipe_->groups.back().first_sized + argument));
      bytes += uint64_t(b.size) * uint64_t(b.dtype.item_bytes());
    }
    for (const BoundVariable& v : call.variables) numbers.variables.push_back(v.value);
    numbers.bytes.push_back(bytes);
    numbers.flops.push_back(
        kernel.flops.count(std::span(numbers.variables).subspan(c.first_variable)));
    if (shows(2) || is_explaining()) {
      c.name = call.name;
      c.operations = kernel_operations(call.ast);
    }
    recipe_->calls.push_back(std::move(c));
  }

  void set_result(Value& value, uint32_t slot) {
    const auto known = result_numbers_.find(&value);
    if (known != result_numbers_.end()) {
      recipe_->results[known->second].slot = slot;
    } else {
      others_.emplace_back(Ref(&value), slot);
    }
  }

  // ---- the call itself

  // What is overwritten is a copy: others may read the memory as it is.
  void run_calls() {
    memory_.resize(recipe_->slot_count());
    is_copied_.resize(recipe_->bindings.size());
    for (size_t i = 0; i < recipe_->bindings.size(); i++) {
      if (!memory_[i]) memory_[i] = watch_.bound()[i].memory;
      if (!recipe_->bindings[i].is_overwritten || is_copied_[i]) continue;
      Ref<Buffer> copy = Buffer::make(memory_[i]->device(), memory_[i]->bytes());
      copy->copy_from(*memory_[i]);
      memory_[i] = std::move(copy);
      is_copied_[i] = true;
    }
    garbage_.reserve(garbage_.size() + (results_.size() + others_.size()) * Value::kMostSources);
    weft::run_calls(*recipe_, memory_, calls_run_);
    calls_run_ = recipe_->calls.size();
    const std::lock_guard lock(graph_mutex());
    for (size_t i = 0; i < results_.size(); i++) {
      if (recipe_->results[i].slot != kNone) fill(*results_[i], recipe_->results[i].slot);
    }
    for (const auto& [value, slot] : others_) fill(*value, slot);
  }

  // An output of a kernel of a user, whose inputs are there; another output may have run it.
  void call(Value& value) {
    if (value.is_filled()) return;
    const CustomKernel& kernel = *value.custom_kernel();
    if (!kernel.results.empty()) throw Overtaken();
    Device& device = value.device();
    const auto [at, is_new] = called_.try_emplace(&kernel, uint32_t(recipe_->slot_count()));
    if (is_new) add_custom_call(kernel, device);
    set_result(value, at->second + uint32_t(value.numbers()[0]));
    for (const Ref<Value>& input : kernel.inputs) {
      const auto failing = failing_.find(input.get());
      if (failing == failing_.end()) continue;
      const std::vector<size_t> checks = failing->second;
      for (const size_t check : checks) add_failing(value, check);
    }
    run_calls();
  }

  void add_custom_call(const CustomKernel& kernel, Device& device) {
    recipe_->custom_programs.push_back(prepare_custom_kernel(kernel, device));
    const PreparedKernel& prepared = *recipe_->custom_programs.back();
    JitRecipe::Call c{.program = prepared.program.get(),
                      .first_argument = uint32_t(recipe_->arguments.size()),
                      .argument_count = uint32_t(kernel.outputs.size() + kernel.inputs.size()),
                      .written = uint32_t(kernel.outputs.size()),
                      .first_variable = uint32_t(recipe_->numbers.variables.size()),
                      .variable_count = 0,
                      .flops = &prepared.flops,
                      .name = {},
                      .operations = {}};
    uint64_t all_bytes = 0;
    for (const CustomKernel::Output& output : kernel.outputs) {
      const size_t bytes = Buffer::bytes_for(device, output.dtype, output.count);
      recipe_->arguments.push_back(add_slot(device, bytes));
      all_bytes += bytes;
    }
    for (const Ref<Value>& input : kernel.inputs) {
      const Value* const at_hand = value_at_hand(*input);
      if (at_hand == nullptr && input->numel() > 0) throw Overtaken();
      recipe_->arguments.push_back(at_hand != nullptr ? slot_of_filled(*at_hand)
                                                      : add_slot(device, 0));
      all_bytes += Buffer::bytes_for(device, input->dtype(), input->numel());
    }
    recipe_->numbers.bytes.push_back(all_bytes);
    recipe_->numbers.flops.push_back(prepared.flops.count({}));
    if (shows(2) || is_explaining()) {
      c.name = kernel.name;
      c.operations = kernel_operations(kernel.ast.root);
    }
    recipe_->calls.push_back(std::move(c));
  }

  void fail_results() {
    const std::lock_guard lock(graph_mutex());
    for (const JitRecipe::Check& check : recipe_->checks) {
      const std::string* const text = failure_of(found_index(*memory_[check.slot]), check.of);
      if (text == nullptr) continue;
      for (const uint32_t result : check.results) results_[result]->set_failure(text);
    }
  }

  void fill(Value& value, uint32_t slot) {
    if (value.is_filled()) return;
    known_[&value] = slot;
    const Ref<Buffer>& memory = memory_[slot];
    std::array<Ref<Value>, Value::kMostSources> released;
    value.fill(memory, released);
    for (Ref<Value>& source : released) {
      if (source) garbage_.push_back(std::move(source));
    }
  }

  std::vector<Ref<Value>> garbage_;  // freed last
  JitWatch& watch_;
  std::unique_ptr<JitRecipe> recipe_;
  std::vector<Ref<Value>> results_;  // the references that a Closure's roots have
  std::vector<std::pair<Ref<Value>, uint32_t>> others_;  // computed on the way, and their slots
  std::unordered_map<const Storage*, uint32_t> made_;
  std::unordered_map<const CustomKernel*, uint32_t> called_;  // the slot of the first output
  std::unordered_map<const Value*, uint32_t> result_numbers_;
  std::unordered_map<const Value*, uint32_t> known_;  // slots of placeholders, and of what has run
  std::unordered_map<const Value*, std::vector<size_t>> failing_;  // checks, of what has run
  std::vector<Ref<Buffer>> memory_;                                // of all slots
  std::vector<bool> is_copied_;                                    // of bindings
  size_t calls_run_ = 0;
  std::vector<Group> groups_;
};

}  // namespace

namespace {

std::shared_ptr<JitRecipe> made_recipe(JitWatch& watch, std::span<const StorageView> outputs,
                                       std::span<const VariableValue> values) {
  const std::lock_guard lock(realize_mutex());
  try {
    return Maker(watch, values).run(outputs);
  } catch (const Overtaken&) {
    watch.settle();
    return nullptr;
  } catch (...) {
    watch.settle();
    throw;
  }
}

}  // namespace

std::shared_ptr<JitRecipe> make_recipe(JitWatch& watch, std::span<const StorageView> outputs,
                                       std::span<const VariableValue> values) {
  bool is_first = true;  // stopped, it cannot begin anew: there is no recipe
  return interruptible([&] {
    const bool begins = std::exchange(is_first, false);
    return begins ? made_recipe(watch, outputs, values) : nullptr;
  });
}

}  // namespace weft
