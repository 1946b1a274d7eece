// Functions of tensors captured and replayed: what the engine does for Storages and Views.
#include "weft/jit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/jit.h"
#include "engine/jit_general.h"
#include "engine/jit_recipe.h"
#include "engine/realize.h"
#include "value/storage.h"
#include "value/storage_view.h"
#include "weft/tensor.h"
#include "weft/variable.h"

namespace weft {
namespace {

void realize_all(std::vector<Tensor>& tensors) {
  std::vector<Tensor*> pointers;
  pointers.reserve(tensors.size());
  for (Tensor& tensor : tensors) pointers.push_back(&tensor);
  Tensor::realize(pointers);
}

// No gradient passes out of a function.
std::vector<Tensor> detached(std::vector<Tensor> tensors) {
  for (Tensor& tensor : tensors) {
    if (!tensor.is_leaf()) tensor = tensor.detach();
  }
  return tensors;
}

std::vector<SeenStorage> seen(std::span<const Tensor> tensors) {
  std::vector<SeenStorage> all;
  all.reserve(tensors.size());
  for (const Tensor& tensor : tensors) all.push_back({tensor.storage().get(), &tensor.view()});
  return all;
}

std::vector<Tensor> tensors_of(std::vector<StorageView> handles) {
  std::vector<Tensor> tensors;
  tensors.reserve(handles.size());
  for (StorageView& h : handles) tensors.emplace_back(std::move(h.storage), std::move(h.view));
  return tensors;
}

// The leaf that a handle is detached from, as it stays; null for all others.
const Storage* detached_leaf(const Tensor& tensor) {
  const bool is_one = tensor.storage()->leaf_number() != 0 && !tensor.requires_grad();
  return is_one ? tensor.storage().get() : nullptr;
}

}  // namespace

// --------------------------------------------------------------------------------------- captures

JitCapture::Result JitCapture::run(std::span<const Tensor> inputs, const Function& function,
                                   const std::function<void()>& before_giving_up,
                                   std::span<const VariableValue> variables) {
  if (is_capturing() || !schedules_are_used()) {
    Result result{.capture = {}, .outputs = function(inputs)};
    if (!is_capturing()) realize_all(result.outputs);
    return result;
  }
  std::vector<const Storage*> detached_leaves;
  const auto of_handles = [&](std::span<const StorageView> proxies) {
    std::vector<Tensor> given = function(tensors_of({proxies.begin(), proxies.end()}));
    std::vector<StorageView> handles;
    handles.reserve(given.size());
    for (Tensor& output : given) {
      output.leave_rest();
      detached_leaves.push_back(detached_leaf(output));
      handles.push_back({output.storage(), output.view()});
    }
    return handles;
  };
  CapturedCall call = capture_call(seen(inputs), of_handles, before_giving_up, variables);
  std::vector<Tensor> outputs = tensors_of(std::move(call.outputs));
  for (size_t i = 0; i < outputs.size(); i++) {
    if (outputs[i].storage().get() == detached_leaves[i]) outputs[i] = outputs[i].detach();
  }
  Result result{.capture = {}, .outputs = detached(std::move(outputs))};
  if (call.recipe) {
    result.capture = JitCapture(std::move(call.recipe));
  } else {
    realize_all(result.outputs);
  }
  return result;
}

std::optional<std::vector<Tensor>> JitCapture::replay(std::span<const Tensor> inputs,
                                                      std::span<const int64_t> values) const {
  auto outputs = replay_call(*recipe_, general_.get(), seen(inputs), values);
  if (!outputs) return {};
  return tensors_of(*std::move(outputs));
}

std::optional<JitCapture> JitCapture::merged(std::span<const JitCapture* const> captures) {
  std::vector<std::shared_ptr<const JitRecipe>> calls;
  for (const JitCapture* capture : captures) {
    if (capture->general_) {
      const auto earlier = capture->general_->calls();
      calls.insert(calls.end(), earlier.begin(), earlier.end());
    } else {
      calls.push_back(capture->recipe_);
    }
  }
  if (calls.size() < 2) return {};
  std::shared_ptr<const JitGeneral> general = JitGeneral::make(calls);
  if (!general) return {};
  const std::shared_ptr<const JitRecipe>& newest = general->recipe();
  return JitCapture(newest, general);
}

bool JitCapture::replaces(const JitCapture& other) const {
  if (!general_) return false;
  if (!other.general_) return serves_calls_of(*general_, *recipe_, *other.recipe_);
  const auto own = general_->calls();
  return std::ranges::all_of(other.general_->calls(), [&](const auto& call) {
    return std::ranges::find(own, call) != own.end();
  });
}

bool JitCapture::is_spent() const { return !general_ && weft::is_spent(*recipe_); }

size_t JitCapture::kernels() const { return recipe_->calls.size(); }

// -------------------------------------------------------------------------------------- functions

namespace {

constexpr size_t kMostCaptures = 8;

bool are_of(std::span<const Variable> variables, std::span<const VariableValue> values) {
  return std::ranges::equal(variables, values, {}, {}, &VariableValue::variable);
}

void refuse_two_values(std::span<const VariableValue> values) {
  for (const VariableValue& v : values) {
    for (const VariableValue& other : values) {
      if (v.variable() != other.variable() || v.value() == other.value()) continue;
      throw JitError(fmt::format("[jit] {} is bound to {} and to {} in one call",
                                 v.variable().name(), v.value(), other.value()));
    }
  }
}

}  // namespace

Jit::Jit(Function function)
    : function_([inner = std::move(function)](std::span<const Tensor> inputs,
                                              std::span<const int64_t>) { return inner(inputs); }) {
}

std::vector<Tensor> Jit::operator()(std::span<const Tensor> inputs,
                                    std::span<const VariableValue> variables) {
  refuse_two_values(variables);
  std::vector<int64_t> values;
  for (const VariableValue& v : variables) values.push_back(v.value());
  if (is_capturing()) return function_(inputs, values);
  if (!std::exchange(has_run_, true)) {
    std::vector<Tensor> outputs = function_(inputs, values);
    realize_all(outputs);
    return detached(std::move(outputs));
  }
  for (size_t i = captures_.size(); i-- > 0;) {
    if (!are_of(captures_[i].variables, variables)) continue;
    const JitCapture& capture = captures_[i].capture;
    std::optional<std::vector<Tensor>> outputs = capture.replay(inputs, values);
    if (!outputs) {
      if (capture.is_spent()) captures_.erase(captures_.begin() + ptrdiff_t(i));
      continue;
    }
    std::rotate(captures_.begin() + ptrdiff_t(i), captures_.begin() + ptrdiff_t(i) + 1,
                captures_.end());
    return std::move(*outputs);
  }
  JitCapture::Result result = JitCapture::run(
      inputs, [&](std::span<const Tensor> proxies) { return function_(proxies, values); }, {},
      variables);
  if (result.capture) add(*std::move(result.capture), variables);
  return std::move(result.outputs);
}

// Where it and others are captures of one kind with different values, what serves all of them takes
// their place.
void Jit::add(JitCapture capture, std::span<const VariableValue> variables) {
  std::vector<const JitCapture*> alike;
  for (const Captured& c : captures_) {
    if (!variables.empty() && are_of(c.variables, variables)) alike.push_back(&c.capture);
  }
  alike.push_back(&capture);
  if (std::optional<JitCapture> general = JitCapture::merged(alike)) {
    capture = *std::move(general);
    std::erase_if(captures_, [&](const Captured& c) {
      return are_of(c.variables, variables) && capture.replaces(c.capture);
    });
  }
  if (captures_.size() == kMostCaptures) captures_.erase(captures_.begin());
  std::vector<Variable> own;
  for (const VariableValue& v : variables) own.push_back(v.variable());
  captures_.push_back({std::move(capture), std::move(own)});
}

void Jit::reset() {
  captures_.clear();
  has_run_ = false;
}

}  // namespace weft
