// Writes through views.
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "engine/foreign_memory.h"
#include "ir/op.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "value/storage.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/gradient.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
void check_broadcasts_to(std::string_view what, Ints shape, Ints target) {
  const bool fits =
      shape.size() <= target.size() && broadcast_shapes(what, shape, target) == Sizes(target);
  if (fits) return;
  throw ShapeError(fmt::format("[{}] a value of shape {} does not broadcast to {}", what,
                               text_of_shape(shape), text_of_shape(target)));
}

void check_not_expanded(std::string_view what, const Tensor& target) {
  if (!is_expanded(target.view())) return;
  throw ShapeError(
      fmt::format("[{}] the target {} is expanded: elements of it share memory; write to a clone",
                  what, text_of_shape(target.shape())));
}

namespace {

// Writes a value that fits the target's shape, or is a scalar.
void write(const Tensor& target, Ref<Value> value) {
  value = cast_value(std::move(value), target.dtype());
  value = as_operand(std::move(value), target.shape());
  keep_bound(*target.storage());  // before the write: what fails has changed nothing
  WriteThrough through(*target.storage());
  const GradMode mode(gradients_are_on() && !target.is_detached());
  target.storage()->write(target.view(), std::move(value));
  through.finish();
}

}  // namespace

Tensor& Tensor::assign(const Tensor& value) {
  check_same_device("assign", *this, value);
  check_broadcasts_to("assign", value.shape(), shape());
  check_not_expanded("assign", *this);
  write(*this, read(value));
  return *this;
}

Tensor& Tensor::assign(Number value) {
  const Ref<Value> constant = constant_value("assign", device_of(*this), dtype(), value);
  keep_bound(*storage_);
  WriteThrough through(*storage_);
  const GradMode mode(gradients_are_on() && !is_detached_);
  storage_->write(without_expanded_axes(view_), constant);
  through.finish();
  return *this;
}

void Tensor::set(Indices index, const Tensor& value) {
  if (!has_tensors(index)) {
    at(index).assign(value);
    return;
  }
  const std::optional<std::vector<Index>> numbers = with_numbers(*this, index);
  if (numbers) return set(*numbers, value);
  check_same_device("index", *this, value);
  Ref<Value> v = read(value);
  if (write_by_mask(*this, index, v) || write_few(*this, index, v)) return;
  choose(*this, index).write("index", std::move(v));
}

void Tensor::set(Indices index, Number value) {
  if (!has_tensors(index)) {
    at(index).assign(value);
    return;
  }
  const std::optional<std::vector<Index>> numbers = with_numbers(*this, index);
  if (numbers) return set(*numbers, value);
  Ref<Value> v = constant_value("index", device_of(*this), dtype(), value);
  if (write_by_mask(*this, index, v) || write_few(*this, index, v)) return;
  choose(*this, index).write("index", std::move(v));
}

namespace {

void check_updatable(const Tensor& target) {
  check_not_expanded("update", target);
  if (!has_overlap(target.view())) return;
  throw ShapeError(
      fmt::format("[update] elements of the target {} share memory; reading and writing it at "
                  "once has no one meaning",
                  text_of_shape(target.shape())));
}

}  // namespace

Tensor& Tensor::update(Op op, const Tensor& y) {
  check_same_device("update", *this, y);
  check_broadcasts_to("update", y.shape(), shape());
  check_updatable(*this);
  const Tensor result = binary(op, y);
  write(*this, read(result));
  return *this;
}

Tensor& Tensor::update(Op op, Number y) {
  check_updatable(*this);
  const Tensor result = binary(op, y);
  write(*this, read(result));
  return *this;
}

}  // namespace weft
