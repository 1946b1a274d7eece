// Between tensors and Values.
#include "tensor/operand.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/config.h"
#include "base/error.h"
#include "base/ref.h"
#include "engine/realize.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/debug.h"
#include "runtime/device.h"
#include "tensor/promote.h"
#include "value/call.h"
#include "value/movement.h"
#include "value/number_watch.h"
#include "value/operation_watch.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

Ref<Value> read(const Tensor& x) {
  return x.storage()->read(x.view(),
                           x.is_detached() ? Storage::Tie::kDetached : Storage::Tie::kAttached);
}

Tensor tensor_of(Ref<Value> value) {
  View view = contiguous_view(value->dtype(), value->shape());
  Ref<Storage> storage = Storage::make(std::move(value));
  keep_bound(*storage);
  if (OperationWatch* watch = operation_watch()) watch->made(*storage);
  return {std::move(storage), std::move(view)};
}

void keep_bound(Storage& storage) {
  const Config& limits = config();
  const bool is_within =
      pending_values() <= limits.most_pending_values && pinned_bytes() <= limits.most_pinned_bytes;
  // A capture is one graph, and so is the body of a call that a realise opens.
  if (is_within || storage_watch() != nullptr || is_opening_call()) return;
  if (shows(2)) {
    show(fmt::format("flush   {} pending values, which hold {} bytes: realised at once",
                     pending_values(), pinned_bytes()));
  }
  Storage* const one[] = {&storage};
  realize(one);
}

Ref<Value> constant_value(std::string_view what, Device& device, DType dtype, Number number) {
  check_fits(what, dtype, number);
  return wrapped_constant(device, dtype, number);
}

Ref<Value> wrapped_constant(Device& device, DType dtype, Number number) {
  const int64_t bits[] = {int64_t(bits_of_number(dtype, number))};
  return Value::make(Op::CONST, dtype, device, {}, std::span<const int64_t>(bits));
}

Ref<Value> full_value(std::string_view what, Device& device, DType dtype, Ints shape,
                      Number number) {
  return broadcast(constant_value(what, device, dtype, number), shape);
}

Ref<Value> cast_value(Ref<Value> x, DType dtype) {
  if (x->dtype() == dtype) return x;
  Value& from = *x;
  return Value::make(Op::CAST, dtype, from.device(), from.shape(), {}, std::move(x));
}

Ref<Value> apply(Op op, DType dtype, Ints shape, Ref<Value> a, Ref<Value> b, Ref<Value> c) {
  Device& device = a->device();
  return Value::make(op, dtype, device, shape, {}, std::move(a), std::move(b), std::move(c));
}

Sizes broadcast_shapes(std::string_view what, Ints a, Ints b) {
  const Ints longer = a.size() >= b.size() ? a : b, shorter = a.size() >= b.size() ? b : a;
  Sizes shape(longer);
  const size_t skipped = longer.size() - shorter.size();
  bool grows = false;
  for (size_t i = 0; i < shorter.size(); i++) {
    int64_t& size = shape[skipped + i];
    if (size == shorter[i] || shorter[i] == 1) continue;
    if (size != 1) {
      throw ShapeError(fmt::format("[{}] the shapes {} and {} do not broadcast: {} against {}",
                                   what, text_of_shape(a), text_of_shape(b), size, shorter[i]));
    }
    size = shorter[i];
    grows = true;
  }
  if (grows) checked_numel(what, shape);
  return shape;
}

Ref<Value> as_operand(Ref<Value> x, Ints shape) {
  return x->shape().empty() ? x : broadcast(std::move(x), shape);
}

Device& device_of(const Tensor& x) { return x.storage()->device(); }

void check_same_device(std::string_view what, const Tensor& a, const Tensor& b) {
  if (&device_of(a) == &device_of(b)) return;
  throw DeviceError(fmt::format("[{}] one tensor is on {}, the other on {}", what,
                                device_of(a).name(), device_of(b).name()));
}

size_t axis_of(std::string_view what, int64_t axis, size_t rank) {
  const int64_t count = int64_t(rank);
  if (axis >= -count && axis < count) return size_t(axis < 0 ? axis + count : axis);
  if (rank == 0) throw IndexError(fmt::format("[{}] there is no axis {} of a scalar", what, axis));
  throw IndexError(
      fmt::format("[{}] there is no axis {}; allowed are {} to {}", what, axis, -count, count - 1));
}

// Sizes are kept in 63 bits (ir/dim.h).
constexpr int64_t kMostElements = (int64_t(1) << 62) - 1;

int64_t checked_numel(std::string_view what, Ints shape) {
  int64_t count = 1;
  bool is_empty = false, is_endless = false;
  for (const int64_t size : shape) {
    if (size < 0) {
      throw ShapeError(
          fmt::format("[{}] {} has a negative size, {}", what, text_of_shape(shape), size));
    }
    assume_at_most(0, size);
    is_empty |= size == 0;
    is_endless |= __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count);
    is_endless |= count > kMostElements;
  }
  if (is_endless) {
    throw ShapeError(
        fmt::format("[{}] {} has more elements than 63 bits count", what, text_of_shape(shape)));
  }
  return is_empty ? 0 : count;
}

std::string text_of_shape(Ints shape) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ","));
}

}  // namespace weft
