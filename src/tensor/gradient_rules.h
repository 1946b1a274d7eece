// The gradient of each operation: what reaches its sources of what reached its result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "value/tape.h"
#include "value/value.h"
#include "weft/view.h"

namespace weft {

// One step of the tape, and the gradient by its result.
class StepBack {
 public:
  StepBack(const Tape& tape, const Tape::Step& step, const Ref<Value>& gradient)
      : tape_(tape), step_(step), gradient_(gradient) {}

  const Value& value() const { return *step_.value; }
  DType dtype() const { return value().dtype(); }
  Device& device() const { return value().device(); }
  Ints shape() const { return value().shape(); }
  const Ref<Value>& gradient() const { return gradient_; }

  bool wants(size_t i) const { return step_.sources[i] != Tape::kNone; }
  const Value& source(size_t i) const { return *tape_.steps()[step_.sources[i]].value; }
  // The data of a source, or of the result: an error where the op does not say that it is read.
  const Ref<Value>& operand(size_t i) const;
  const Ref<Value>& result() const;

 private:
  const Tape& tape_;
  const Tape::Step& step_;
  const Ref<Value>& gradient_;
};

// By each source; none where none is wanted, or it is 0.
using Gradients = std::array<Ref<Value>, Value::kMostSources>;

// Throws Error where the op has no gradient.
Gradients gradients_of(const StepBack& step);

// The gradient by the elements of a value with `numel` elements in row-major order, of that by a
// view of them (gradient_views.cpp).
Ref<Value> gradient_through_view(Ref<Value> gradient, const View& view, int64_t numel);
Gradients gradients_of_write(const StepBack& step);
// Where integers name elements (gradient_chosen.cpp).
Gradients gradients_of_gather(const StepBack& step);
Gradients gradients_of_scatter(const StepBack& step);
// gradient_scan.cpp
Gradients gradients_of_scan(const StepBack& step);

}  // namespace weft
