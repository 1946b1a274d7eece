// From a Value back to the targets; the walk is iterative.
#include "value/tape.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "ir/op.h"
#include "value/storage.h"
#include "value/value.h"
#include "weft/gradient.h"

namespace weft {
namespace {

thread_local bool is_on = true;

}  // namespace

bool gradients_are_on() { return is_on; }
void set_gradients(bool on) { is_on = on; }
GradMode::GradMode(bool on) : before_(std::exchange(is_on, on)) {}
GradMode::~GradMode() { is_on = before_; }

std::mutex& tape_mutex() {
  static std::mutex mutex;
  return mutex;
}

namespace {

// How many of the first sources a gradient goes on to.
size_t passed_sources(const Value& value, size_t count) {
  if (!value.dtype().is_float() || value.is(Op::DETACH)) return 0;
  if (!value.is_untaped()) return count;
  return value.is(Op::AFTER) ? 1 : 0;
}

// Values whose sources are being visited; `next` of them have been.
struct Opened {
  Value* value;
  size_t next, count;
};

constexpr uint32_t kOpened = Tape::kNone - 1;

}  // namespace

Tape::Tape(std::span<Value* const> roots, const Targets& targets) {
  const std::lock_guard graph(graph_mutex());
  const std::lock_guard lock(tape_mutex());
  collect(roots, targets);
}

Tape::~Tape() {
  for (Step& step : steps_) {
    step.operands = {};
    step.out = {};
    Value::release_step(step.value);
  }
}

void Tape::collect(std::span<Value* const> roots, const Targets& targets) {
  // Leaves lie beneath tracked Values alone.
  const bool tracked_only = std::all_of(targets.values.begin(), targets.values.end(),
                                        [](const Value* v) { return v->is_tracked(); });
  std::vector<const Value*> values(targets.values.begin(), targets.values.end());
  std::sort(values.begin(), values.end());
  const auto is_target = [&](const Value& v) {
    if (v.linked_step() != nullptr) return true;
    if (v.is(Value::Kind::kLeaf)) {
      const int64_t number = v.numbers()[0];
      if (targets.all_leaves ||
          std::find(targets.leaves.begin(), targets.leaves.end(), number) != targets.leaves.end()) {
        return true;
      }
    }
    return std::binary_search(values.begin(), values.end(), &v);
  };
  std::unordered_map<const Value*, uint32_t> step_of;
  std::vector<Opened> stack;
  const auto open = [&](Value& value) {
    const bool is_walked = !tracked_only || value.is_tracked();
    stack.push_back({&value, 0, is_walked ? passed_sources(value, value.source_count_) : 0});
    step_of[&value] = kOpened;
  };
  for (Value* root : roots) {
    if (!step_of.contains(root)) open(*root);
    while (!stack.empty()) {
      auto& [value, next, count] = stack.back();
      if (next < count) {
        Value* source = value->sources_[next++].get();
        if (source != nullptr && !step_of.contains(source)) open(*source);
        continue;
      }
      std::array<uint32_t, Value::kMostSources> sources;
      sources.fill(kNone);
      bool leads = is_target(*value);
      const bool is_asked = leads;
      for (size_t i = 0; i < count; i++) {
        const Value* source = value->sources_[i].get();
        if (source != nullptr) sources[i] = step_of.at(source);
        leads |= sources[i] != kNone;
      }
      step_of[value] = leads ? uint32_t(steps_.size()) : kNone;
      if (leads) add(*value, is_asked, sources);
      stack.pop_back();
    }
    roots_.push_back(step_of.at(root));
  }
}

void Tape::add(Value& value, bool is_target, std::span<const uint32_t> sources) {
  Step step;
  step.value = &value;
  step.is_target = is_target;
  std::copy(sources.begin(), sources.end(), step.sources.begin());
  for (size_t i = 0; i < value.source_count_; i++) {
    const bool is_step = (value.step_mask_ >> i & 1) != 0;
    if (value.sources_[i] && !is_step) step.operands[i] = value.sources_[i];
  }
  uint32_t owners = value.owners_.load(std::memory_order_relaxed);
  while (owners != 0 &&
         !value.owners_.compare_exchange_weak(owners, owners + 1, std::memory_order_acq_rel)) {
  }
  if (owners != 0) step.out = Ref<Value>::adopt(&value);
  if (value.is(Value::Kind::kLeaf)) step.leaf = Storage::find_leaf(value.numbers()[0]);
  Value::retain_step(&value);
  steps_.push_back(std::move(step));
}

}  // namespace weft
