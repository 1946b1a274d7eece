// Gradients that users give.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "runtime/device.h"
#include "tensor/operand.h"
#include "value/linked_step.h"
#include "value/movement.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

struct Kind {
  Device* device;
  DType dtype;
  Sizes shape;
};

std::vector<Kind> kinds_of(std::span<const Tensor> tensors) {
  std::vector<Kind> kinds;
  for (const Tensor& t : tensors) kinds.push_back({&device_of(t), t.dtype(), Sizes(t.shape())});
  return kinds;
}

class UserStep : public LinkedStep {
 public:
  UserStep(std::span<const Ref<Value>> values, std::span<const Tensor> inputs,
           std::span<const Tensor> results, Tensor::Backward backward)
      : LinkedStep(values),
        inputs_(kinds_of(inputs)),
        outputs_(kinds_of(results)),
        backward_(std::move(backward)) {
    results_ = outputs_.size();
  }

  Tensor linked(const Tensor& values, size_t i) {
    return tensor_of(Value::make_linked(detached(read(values)), Ref<LinkedStep>(this), i));
  }

  std::vector<Ref<Value>> gradients(std::span<const Ref<Value>> by_results) override {
    std::vector<Tensor> given;
    for (size_t i = 0; i < outputs_.size(); i++) {
      const auto& [device, dtype, shape] = outputs_[i];
      given.push_back(tensor_of(
          by_results[i] ? by_results[i] : full_value("function", *device, dtype, shape, 0.0)));
    }
    const Tensor::BackwardCall call{
        .gradients = given,
        .as_result = [this](const Tensor& values, size_t i) { return linked(values, i); }};
    const std::vector<std::optional<Tensor>> by = backward_(call);
    if (by.size() != inputs_.size()) {
      throw ShapeError(fmt::format("[function] its backward gave {} gradients for {} tensors",
                                   by.size(), inputs_.size()));
    }
    std::vector<Ref<Value>> values(by.size());
    for (size_t i = 0; i < by.size(); i++) {
      if (by[i] && inputs_[i].dtype.is_float()) values[i] = fitting(*by[i], i);
    }
    return values;
  }

 private:
  Ref<Value> fitting(const Tensor& by, size_t i) const {
    const Kind& input = inputs_[i];
    if (Sizes(by.shape()) != input.shape || &device_of(by) != input.device) {
      throw ShapeError(fmt::format(
          "[function] its backward gave {} on {} as the gradient by tensor {}, which is {} on {}",
          text_of_shape(by.shape()), by.device(), i, text_of_shape(input.shape),
          input.device->name()));
    }
    return cast_value(read(by), input.dtype);
  }

  std::vector<Kind> inputs_, outputs_;
  Tensor::Backward backward_;
};

}  // namespace

std::vector<Tensor> Tensor::with_gradient(std::span<const Tensor> results,
                                          std::span<const Tensor> inputs, Backward backward) {
  std::vector<Tensor> linked;
  std::vector<Ref<Value>> values;
  for (const Tensor& input : inputs) values.push_back(read(input));
  if (std::ranges::none_of(values, [](const auto& v) { return v->is_tracked(); })) {
    for (const Tensor& result : results) linked.push_back(tensor_of(detached(read(result))));
    return linked;
  }
  const Ref<UserStep> step =
      Ref<UserStep>::adopt(new UserStep(values, inputs, results, std::move(backward)));
  for (size_t i = 0; i < results.size(); i++) {
    const bool has_gradient = results[i].dtype().is_float();
    linked.push_back(has_gradient ? step->linked(results[i], i)
                                  : tensor_of(detached(read(results[i]))));
  }
  return linked;
}

}  // namespace weft
