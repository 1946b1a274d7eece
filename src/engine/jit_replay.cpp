// A recipe run on the storages of a call.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/ref.h"
#include "engine/foreign_memory.h"
#include "engine/index_checks.h"
#include "engine/jit.h"
#include "engine/jit_capture.h"
#include "engine/jit_general.h"
#include "engine/jit_recipe.h"
#include "engine/realize.h"
#include "ir/op.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "schedule/size_use.h"
#include "value/number_watch.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/training.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/gradient.h"
#include "weft/tensor.h"
#include "weft/variable.h"
#include "weft/view.h"

namespace weft {
namespace {

constexpr uint32_t kNone = JitRecipe::kNone;

bool has_gradient_as_captured(const JitRecipe& recipe, std::span<Storage* const> storages,
                              size_t i) {
  using Kind = JitRecipe::Binding::Gradient::Kind;
  const JitRecipe::Binding& b = recipe.bindings[i];
  if (b.is_leaf != (storages[i]->leaf_number() != 0)) return false;
  if (!b.is_leaf) return true;
  const Ref<Storage> gradient = storages[i]->gradient();
  if (b.gradient_before.kind == Kind::kBinding) {
    return gradient.get() == storages[b.gradient_before.number];
  }
  return bool(gradient) == (b.gradient_before.kind == Kind::kOther);
}

// The storages of this call, by binding; none where it is not a call of this kind.
std::optional<std::vector<Storage*>> storages_for(const JitRecipe& recipe,
                                                  std::span<const SeenStorage> inputs) {
  if (inputs.size() != recipe.inputs.size()) return {};
  if (recipe.default_device != &find_device({})) return {};
  if (recipe.is_training != is_training() || recipe.has_gradients != gradients_are_on()) return {};
  std::vector<Storage*> storages(recipe.bindings.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    const JitRecipe::Input& input = recipe.inputs[i];
    const JitRecipe::Binding& b = recipe.bindings[input.binding];
    Storage* const storage = inputs[i].storage;
    if (&storage->device() != b.device) return {};
    if (b.is_part) {
      const View& view = *inputs[i].view;
      const bool fits = view.dtype == input.view.dtype && view.shape == input.view.shape;
      if (!fits || !is_contiguous(view) || !is_as_in_memory(view.dtype, storage->dtype())) {
        return {};
      }
    } else if (*inputs[i].view != input.view || storage->dtype() != b.dtype ||
               storage->numel() != b.numel) {
      return {};
    }
    Storage*& at = storages[input.binding];
    if (at != nullptr && at != storage) return {};
    at = storage;
  }
  bool writes = false;
  for (size_t i = 0; i < storages.size(); i++) {
    const JitRecipe::Binding& b = recipe.bindings[i];
    if (b.captured) {
      storages[i] = b.captured.get();
      if (storages[i]->owners() <= storages[i]->captures()) return {};
    }
    writes |= b.is_written();
  }
  for (size_t i = 0; i < storages.size(); i++) {
    if (!has_gradient_as_captured(recipe, storages, i)) return {};
  }
  // Inputs on one storage are one binding. Where nothing is written it does not matter otherwise.
  for (size_t i = 0; writes && i < storages.size() && !recipe.bindings[i].captured; i++) {
    for (size_t j = i + 1; j < storages.size(); j++) {
      if (storages[i] == storages[j]) return {};
    }
  }
  return storages;
}

// One run of a recipe on the storages of a call.
class Replay {
 public:
  Replay(const JitRecipe& recipe, const JitNumbers& numbers, std::span<const SeenStorage> inputs,
         std::span<Storage* const> storages)
      : recipe_(recipe), numbers_(numbers), inputs_(inputs), storages_(storages) {}
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  // What was made last is freed first: the next replay is given the same memory in the same places.
  ~Replay() {
    while (!memory_.empty()) memory_.pop_back();
  }

  std::vector<StorageView> run() {
    make_results();
    std::unique_lock realizing = interruptible([&] { return compute(); });
    const InterruptScope whole(InterruptScope::Kind::kNever);
    const std::string* const failure = publish();
    realizing.unlock();
    std::vector<StorageView> results = outputs();
    if (failure != nullptr) throw IndexError(*failure);
    return results;
  }

 private:
  // The Values of results: others wait for them while they are computed.
  void make_results() {
    results_.resize(recipe_.results.size());
    const auto make = [&](uint32_t number) {
      const JitRecipe::Result& r = recipe_.results[number];
      if (results_[number]) return;
      results_[number] = Value::make(Op::BUFFER, r.dtype, *r.device, numbers_.shapes[number]);
    };
    for (const JitRecipe::Binding& b : recipe_.bindings) {
      if (b.is_written()) make(b.result);
    }
    for (size_t i = 0; i < recipe_.made.size(); i++) {
      const uint32_t result = recipe_.made[i].result;
      make(result);
      made_.push_back(Storage::make(results_[result], numbers_.origins[i]));
    }
  }

  // The lock of realise, held since all was computed. Or all is as it was.
  std::unique_lock<InterruptibleMutex> compute() {
    std::unique_lock realizing(realize_mutex());
    while (!take_versions()) {
      realizing.unlock();
      realize(storages_);
      realizing.lock();
    }
    try {
      own_overwritten();
      run_recipe(recipe_, numbers_, memory_);
    } catch (...) {
      const std::lock_guard lock(graph_mutex());
      for (size_t i = 0; i < storages_.size(); i++) swap_version(i);
      throw;
    }
    return realizing;
  }

  // The memory of what storages hold, all of it at one moment; results take its place. False when
  // something is not in memory.
  bool take_versions() {
    versions_.assign(storages_.size(), {});
    memory_.resize(storages_.size());
    overwritten_.clear();
    const std::lock_guard lock(graph_mutex());
    for (const Storage* storage : storages_) {
      if (!storage->version_locked()->is_filled()) return false;
    }
    for (size_t i = 0; i < storages_.size(); i++)
      memory_[i] = storages_[i]->version_locked()->buffer();
    for (size_t i = 0; i < storages_.size(); i++) {
      const JitRecipe::Binding& b = recipe_.bindings[i];
      if (!b.is_written() || b.is_part) continue;
      versions_[i] = results_[b.result];
      swap_version(i);
    }
    return true;
  }

  void swap_version(size_t i) {
    if (versions_[i]) storages_[i]->replace_version(versions_[i]);
  }

  // Parts are taken, and what is overwritten is copied where anybody else holds the Value or the
  // memory.
  void own_overwritten() {
    for (const JitRecipe::Input& input : recipe_.inputs) {
      if (!recipe_.bindings[input.binding].is_part) continue;
      const View& view = *inputs_[size_t(&input - recipe_.inputs.data())].view;
      const size_t width = size_t(view.dtype.item_bytes());
      Ref<Buffer>& memory = memory_[input.binding];
      memory = Buffer::make_part(memory, size_t(view.offset) * width, size_t(view.numel()) * width);
    }
    seen_outside_.resize(storages_.size());
    for (size_t i = 0; i < storages_.size(); i++) {
      Ref<Buffer>& memory = memory_[i];
      seen_outside_[i] = memory->is_seen_outside();
      if (!recipe_.bindings[i].is_overwritten) continue;
      const bool is_own = versions_[i] && versions_[i]->owners() == 1 && memory->owners() == 2 &&
                          !memory->is_borrowed();
      if (is_own) {
        overwritten_.push_back(i);
        continue;
      }
      Ref<Buffer> copy = Buffer::make(memory->device(), memory->bytes());
      copy->copy_from(*memory);
      memory = std::move(copy);
    }
  }

  // Why something failed; null: nothing has.
  const std::string* publish() {
    const std::string* failure = nullptr;
    std::array<Ref<Value>, Value::kMostSources> released;  // results have no sources
    const std::lock_guard lock(graph_mutex());
    for (const JitRecipe::Check& check : recipe_.checks) {
      const std::string* const text = failure_of(found_index(*memory_[check.slot]), check.of);
      if (text == nullptr) continue;
      failure = text;
      for (const uint32_t result : check.results) {
        if (results_[result]) results_[result]->set_failure(text);
      }
    }
    for (const size_t i : overwritten_) memory_[i]->next_generation();
    for (size_t i = 0; i < results_.size(); i++) {
      if (results_[i]) results_[i]->fill(memory_[recipe_.results[i].slot], released);
    }
    return failure;
  }

  std::vector<StorageView> outputs() {
    for (size_t i = 0; i < storages_.size(); i++) {
      const JitRecipe::Binding& b = recipe_.bindings[i];
      if (!b.is_written()) continue;
      if (b.is_part) {
        WriteThrough through(*storages_[i]);
        storages_[i]->write(part_of(i), results_[b.result]);
        through.finish();
      } else if (seen_outside_[i]) {
        write_through(*storages_[i], versions_[i]);
      }
    }
    for (size_t i = 0; i < storages_.size(); i++) {
      if (recipe_.bindings[i].is_leaf) set_gradient(i);
    }
    std::vector<StorageView> outputs;
    outputs.reserve(recipe_.outputs.size());
    for (size_t i = 0; i < recipe_.outputs.size(); i++) {
      const JitRecipe::Output& o = recipe_.outputs[i];
      const View& view = numbers_.views[i];
      if (o.binding == kNone) {
        outputs.push_back({made_[o.made], view});
        continue;
      }
      const bool is_part = recipe_.bindings[o.binding].is_part;
      outputs.push_back(
          {Ref(storages_[o.binding]), is_part ? placed(view, part_of(o.binding)) : view});
    }
    return outputs;
  }

  void set_gradient(size_t i) {
    using Kind = JitRecipe::Binding::Gradient::Kind;
    const auto [kind, number] = recipe_.bindings[i].gradient_after;
    if (kind == Kind::kNone) storages_[i]->set_gradient({});
    if (kind == Kind::kBinding) storages_[i]->set_gradient(Ref(storages_[number]));
    if (kind == Kind::kMade) storages_[i]->set_gradient(made_[number]);
  }

  const View& part_of(size_t binding) const {
    const auto at =
        std::ranges::find(recipe_.inputs, uint32_t(binding), &JitRecipe::Input::binding);
    return *inputs_[size_t(at - recipe_.inputs.begin())].view;
  }

  const JitRecipe& recipe_;
  const JitNumbers& numbers_;
  std::span<const SeenStorage> inputs_;
  std::span<Storage* const> storages_;
  std::vector<Ref<Value>> versions_;  // before, of what is written
  std::vector<Ref<Value>> results_;
  std::vector<Ref<Storage>> made_;
  std::vector<Ref<Buffer>> memory_;
  std::vector<size_t> overwritten_;  // in place
  std::vector<bool> seen_outside_;
};

}  // namespace

namespace {

bool takes_same_calls(const JitRecipe& a, const JitRecipe& b) {
  using Binding = JitRecipe::Binding;
  const auto is_same_binding = [](const Binding& x, const Binding& y) {
    return x.captured == y.captured && x.device == y.device && x.dtype == y.dtype &&
           x.numel == y.numel && x.is_part == y.is_part && x.is_written() == y.is_written() &&
           x.is_leaf == y.is_leaf && x.gradient_before.kind == y.gradient_before.kind &&
           x.gradient_before.number == y.gradient_before.number;
  };
  const auto is_same_input = [](const JitRecipe::Input& x, const JitRecipe::Input& y) {
    return x.binding == y.binding && x.view == y.view;
  };
  return a.default_device == b.default_device && a.is_training == b.is_training &&
         a.has_gradients == b.has_gradients && a.values.size() == b.values.size() &&
         std::ranges::equal(a.bindings, b.bindings, is_same_binding) &&
         std::ranges::equal(a.inputs, b.inputs, is_same_input);
}

bool has_values(const JitRecipe& recipe, std::span<const int64_t> values) {
  return std::ranges::equal(recipe.values, values, {}, &VariableValue::value);
}

}  // namespace

std::optional<std::vector<StorageView>> replay_call(const JitRecipe& recipe,
                                                    const JitGeneral* general,
                                                    std::span<const SeenStorage> inputs,
                                                    std::span<const int64_t> values) {
  const bool is_general = general != nullptr && values.size() == recipe.values.size();
  if (!is_general && !has_values(recipe, values)) return {};
  const std::optional<std::vector<Storage*>> storages = storages_for(recipe, inputs);
  if (!storages) return {};
  if (is_general) {
    const std::shared_ptr<const JitNumbers> numbers = general->numbers(values);
    if (!numbers) return {};
    return Replay(recipe, *numbers, inputs, *storages).run();
  }
  for (const std::shared_ptr<SizeUse>& use : recipe.uses) use->count_run();
  if (is_spent(recipe)) return {};
  return Replay(recipe, recipe.numbers, inputs, *storages).run();
}

bool is_spent(const JitRecipe& recipe) {
  return std::ranges::any_of(recipe.uses, [](const auto& use) { return use->is_spent(); });
}

bool serves_calls_of(const JitGeneral& general, const JitRecipe& newest, const JitRecipe& other) {
  std::vector<int64_t> values;
  for (const VariableValue& v : other.values) values.push_back(v.value());
  return takes_same_calls(newest, other) && general.numbers(values) != nullptr;
}

}  // namespace weft
