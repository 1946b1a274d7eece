// Gradients of tensors: back over the tape, step by step.
#include "weft/gradient.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "engine/realize.h"
#include "ir/op.h"
#include "tensor/gradient_rules.h"
#include "tensor/operand.h"
#include "value/call.h"
#include "value/closure.h"
#include "value/linked_step.h"
#include "value/movement.h"
#include "value/operation_watch.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/tape.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

void check_has_gradient(const Tensor& x) {
  if (x.dtype().is_float()) return;
  throw DTypeError(
      fmt::format("[gradient] {} has no gradient; only floats have", x.dtype().name()));
}

// What the walk back begins with: 1, or the weights given.
Ref<Value> seed_of(const Tensor& root, const std::optional<Tensor>& gradient) {
  check_has_gradient(root);
  if (!gradient) {
    if (root.numel() != 1) {
      throw ShapeError(
          fmt::format("[backward] {} has {} elements, not one; sum it, or say by "
                      "`gradient` how much each of them counts",
                      text_of_shape(root.shape()), root.numel()));
    }
    return full_value("backward", device_of(root), root.dtype(), root.shape(), 1.0);
  }
  check_same_device("backward", root, *gradient);
  if (Sizes(gradient->shape()) != Sizes(root.shape())) {
    throw ShapeError(fmt::format("[backward] a gradient of shape {} is given for {}",
                                 text_of_shape(gradient->shape()), text_of_shape(root.shape())));
  }
  return cast_value(read(*gradient), root.dtype());
}

void will_collect(Storage& leaf) {
  if (OperationWatch* watch = operation_watch()) watch->will_collect(leaf);
}

// Adds a gradient by `of` to what there is.
void add_to(Ref<Value>& sum, Ref<Value> more, const Value& of) {
  if (!sum) {
    sum = std::move(more);
  } else {
    sum = apply(Op::ADD, of.dtype(), of.shape(), std::move(sum), std::move(more));
  }
}

// The gradient by every step of a tape, of its roots, each of which has one.
std::vector<Ref<Value>> walk_back(const Tape& tape, std::span<Ref<Value>> by_roots) {
  const std::span<const Tape::Step> steps = tape.steps();
  std::vector<Ref<Value>> by(steps.size());
  for (size_t i = 0; i < by_roots.size(); i++) {
    const uint32_t root = tape.roots()[i];
    if (root != Tape::kNone) add_to(by[root], std::move(by_roots[i]), *steps[root].value);
  }
  for (size_t i = steps.size(); i-- > 0;) {
    if (!by[i]) continue;
    const Tape::Step& step = steps[i];
    bool goes_on = false;
    for (const uint32_t source : step.sources) goes_on |= source != Tape::kNone;
    if (!goes_on) continue;
    Gradients more = gradients_of(StepBack(tape, step, by[i]));
    for (size_t k = 0; k < more.size(); k++) {
      const uint32_t source = step.sources[k];
      if (more[k]) add_to(by[source], std::move(more[k]), *steps[source].value);
    }
    if (!step.is_target) by[i] = {};
  }
  return by;
}

// What a walk back came to: a leaf, or a Value that was asked for.
struct Reached {
  const Value* value;   // by its address, the Value that was asked for
  int64_t leaf_number;  // 0: none
  Ref<Storage> leaf;    // where it lives
  Sizes shape;
  Ref<Value> gradient;
};

// A walk back over tapes: from a root to the results of LinkedSteps, and on from their inputs.
// Later steps come first: what leads to a step is known before the step is.
class WalkBack {
 public:
  explicit WalkBack(const Tape::Targets& targets) : targets_(targets) {}

  std::vector<Reached> run(const Ref<Value>& root, Ref<Value> seed) {
    Value* const roots[] = {root.get()};
    Ref<Value> by_roots[] = {std::move(seed)};
    walk(roots, by_roots);
    while (!pending_.empty()) {
      const Pending next = std::move(pending_.extract(std::prev(pending_.end())).mapped());
      std::vector<Ref<Value>> by = next.step->gradients(next.by_results);
      std::vector<Value*> inputs;
      std::vector<Ref<Value>> by_inputs;
      for (size_t i = 0; i < by.size(); i++) {
        if (!by[i] || next.step->inputs()[i] == nullptr) continue;
        inputs.push_back(next.step->inputs()[i]);
        by_inputs.push_back(std::move(by[i]));
      }
      walk(inputs, by_inputs);
    }
    return std::move(reached_);
  }

  bool leads_to_targets() const { return leads_; }

 private:
  // What no gradient passes by itself may be a call: on the way to a target that was asked for all
  // are opened. Beneath a call that is being opened all are.
  void open_calls_beneath(std::span<Value* const> roots) const {
    const auto is_tracked = [](const Value* v) { return v->is_tracked(); };
    if (std::ranges::all_of(targets_.values, is_tracked) || is_opening_call()) return;
    const std::lock_guard lock(realize_mutex());
    Closure::open_calls_beneath(roots);
  }

  struct Pending {
    Ref<LinkedStep> step;
    std::vector<Ref<Value>> by_results;
  };

  void walk(std::span<Value* const> roots, std::span<Ref<Value>> by_roots) {
    open_calls_beneath(roots);
    const Tape tape(roots, targets_);
    leads_ |= !tape.steps().empty();
    std::vector<Ref<Value>> by = walk_back(tape, by_roots);
    for (size_t i = 0; i < by.size(); i++) {
      const Tape::Step& step = tape.steps()[i];
      if (!by[i] || !step.is_target) continue;
      const Value& value = *step.value;
      if (LinkedStep* linked = value.linked_step()) {
        auto [at, is_new] = pending_.try_emplace(linked->number());
        if (is_new) at->second = {Ref(linked), std::vector<Ref<Value>>(linked->results())};
        add_to(at->second.by_results[size_t(value.numbers()[0])], by[i], value);
      }
      reached_.push_back({.value = &value,
                          .leaf_number = value.is(Value::Kind::kLeaf) ? value.numbers()[0] : 0,
                          .leaf = step.leaf,
                          .shape = Sizes(value.shape()),
                          .gradient = std::move(by[i])});
    }
  }

  Tape::Targets targets_;
  bool leads_ = false;
  std::map<uint64_t, Pending> pending_;  // by the number of the step
  std::vector<Reached> reached_;
};

// A gradient is of the shape that its tensor is laid out in, whatever view of it a rule made.
Ref<Value> sum_of(Ref<Value> a, Ref<Value> b) {
  if (!a) return b;
  const Sizes shape(a->shape());
  const DType dtype = a->dtype();
  return apply(Op::ADD, dtype, shape, std::move(a), std::move(b));
}

// The Storages beneath a root of which nothing was said, where none requires a gradient. A capture
// collects for those alone that it made.
std::vector<Reached> reached_unsaid(const Ref<Value>& root, Ref<Value> seed) {
  const StorageWatch* const capture = storage_watch();
  std::unordered_multimap<const Value*, Ref<Storage>> by_version;
  std::vector<const Value*> versions;
  std::vector<Ref<Value>> owners;
  for (Ref<Storage>& storage : Storage::all_unsaid()) {
    if (capture != nullptr && storage->made_under() != capture->number()) continue;
    Ref<Value> version = storage->version();
    if (!version->dtype().is_float()) continue;
    versions.push_back(version.get());
    by_version.emplace(version.get(), std::move(storage));
    owners.push_back(std::move(version));
  }
  std::vector<Reached> out;
  for (Reached& by : WalkBack({.values = versions}).run(root, std::move(seed))) {
    const auto [first, last] = by_version.equal_range(by.value);
    for (auto at = first; at != last; ++at) {
      out.push_back({by.value, 0, at->second, by.shape, by.gradient});
    }
  }
  if (!out.empty()) return out;
  throw Error(
      "[backward] nothing that this was computed from requires a gradient, as far as that is "
      "known: of tensors that nothing was said about, and of values that were asked for already, "
      "it is not kept; set requires_grad");
}

}  // namespace

bool Tensor::requires_grad() const {
  if (is_detached_ || !dtype().is_float()) return false;
  return storage_->leaf_number() != 0 || storage_->version()->is_tracked();
}

bool Tensor::is_leaf() const { return !requires_grad() || storage_->leaf_number() != 0; }

Tensor& Tensor::set_requires_grad(bool required) {
  if (required) check_has_gradient(*this);
  const bool is_tracked = storage_->version()->is_tracked();
  if (is_detached_ && required && (is_tracked || storage_->leaf_number() != 0)) {
    throw Error(
        "[requires_grad] the memory that this is detached from has gradients of its own; clone it");
  }
  if (!required && is_tracked && !is_detached_) {
    throw Error("[requires_grad] this was computed from tensors that require gradients; detach it");
  }
  if (required) is_detached_ = false;
  if (!is_tracked && !is_detached_) {
    storage_->set_leaf(required);
    storage_->set_excluded(!required);
  }
  return *this;
}

Tensor Tensor::detach() const {
  Tensor result = *this;
  result.is_detached_ = true;
  return result;
}

Tensor Tensor::contiguous_backward() const {
  return tensor_of(apply(Op::CONTIGUOUS_BACKWARD, dtype(), shape(), read(*this)));
}

void Tensor::backward(const std::optional<Tensor>& gradient) const {
  const NoGrad off;
  Ref<Value> seed = seed_of(*this, gradient);
  const Ref<Value> root = [&] {
    const GradMode on(true);
    return read(*this);
  }();
  WalkBack walk({.all_leaves = true});
  std::vector<Reached> all = walk.run(root, seed);
  if (!walk.leads_to_targets()) all = reached_unsaid(root, std::move(seed));
  for (Reached& by : all) {
    if (!by.leaf) continue;
    View view = contiguous_view(by.leaf->dtype(), by.shape);
    if (Ref<Storage> collected = by.leaf->gradient()) {
      Tensor grad(std::move(collected), std::move(view));
      grad.assign(grad.add(tensor_of(std::move(by.gradient))));
    } else {
      will_collect(*by.leaf);
      by.leaf->set_gradient(tensor_of(std::move(by.gradient)).storage());
    }
  }
}

std::vector<Tensor> Tensor::gradient(std::span<const Tensor> targets,
                                     const std::optional<Tensor>& gradient) const {
  std::vector<Ref<Value>> versions;
  std::vector<const Value*> values;
  std::vector<int64_t> leaves;
  for (const Tensor& target : targets) {
    check_has_gradient(target);
    versions.push_back(target.storage()->version());
    const int64_t number = target.storage()->leaf_number();
    if (number != 0) leaves.push_back(number);
    values.push_back(number != 0 ? nullptr : versions.back().get());
  }
  std::vector<const Value*> asked;
  for (const Value* value : values) {
    if (value != nullptr) asked.push_back(value);
  }
  const std::vector<Reached> all =
      WalkBack({.values = asked, .leaves = leaves}).run(read(*this), seed_of(*this, gradient));
  std::vector<Tensor> results;
  for (size_t k = 0; k < targets.size(); k++) {
    const int64_t number = targets[k].storage()->leaf_number();
    Ref<Value> sum;
    for (const Reached& by : all) {
      const bool is_it = number != 0 ? by.leaf_number == number : by.value == values[k];
      if (is_it) sum = sum_of(std::move(sum), by.gradient);
    }
    if (!sum) {
      throw Error(fmt::format(
          "[gradient] target {} is not among what this was computed from, as far as that is known: "
          "past values that were asked for it is kept for tensors that require gradients",
          k));
    }
    results.push_back(tensor_of(view_of(std::move(sum), targets[k].view())));
  }
  return results;
}

std::optional<Tensor> Tensor::grad() const {
  if (is_detached_) return {};
  Ref<Storage> collected = storage_->gradient();
  if (!collected) return {};
  return Tensor(std::move(collected), view_);
}

void Tensor::set_grad(const std::optional<Tensor>& grad) {
  will_collect(*storage_);
  if (!grad) {
    storage_->set_gradient({});
    return;
  }
  check_same_device("grad", *this, *grad);
  if (Sizes(grad->shape()) != Sizes(shape()) || grad->dtype() != dtype()) {
    throw ShapeError(fmt::format("[grad] a gradient of {} {} is {} {}; given is {} {}",
                                 dtype().name(), text_of_shape(shape()), dtype().name(),
                                 text_of_shape(shape()), grad->dtype().name(),
                                 text_of_shape(grad->shape())));
  }
  if (storage_->leaf_number() == 0 && (storage_->is_excluded() || is_detached_)) {
    throw Error("[grad] gradients are collected for tensors that require them, not for this one");
  }
  const bool is_whole = numel() == storage_->numel() && is_contiguous() && grad->is_contiguous() &&
                        grad->numel() == grad->storage()->numel();
  if (is_whole) {
    storage_->set_gradient(grad->storage());
    return;
  }
  const int64_t count[] = {storage_->numel()};
  const Tensor whole = zeros(std::span<const int64_t>(count), dtype(), device());
  Tensor(whole.storage(), view_).assign(*grad);
  storage_->set_gradient(whole.storage());
}

}  // namespace weft
