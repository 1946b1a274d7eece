// New tensors of parts of others: pad, cat, roll.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tensor/operand.h"
#include "tensor/promote.h"
#include "value/movement.h"
#include "value/number_watch.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

// Zeros around x: `befores` and `afters` of each axis.
Ref<Value> pad_value(Ref<Value> x, const Sizes& befores, const Sizes& afters) {
  Sizes shape(x->shape()), numbers = befores;
  for (size_t i = 0; i < shape.size(); i++) shape[i] += befores[i] + afters[i];
  if (Ints(shape).size() == 0 || shape == Sizes(x->shape())) return x;
  if (x->numel() == 0) {
    Ref<Value> zeros = full_value("pad", x->device(), x->dtype(), shape, int64_t(0));
    return Value::make_tied(std::move(zeros), std::move(x));
  }
  numbers.append(afters);
  Value& from = *x;
  return Value::make(Op::PAD, from.dtype(), from.device(), shape, numbers, std::move(x));
}

}  // namespace

Tensor Tensor::pad(Pairs before_after, Number value) const {
  if (before_after.size() != view_.rank()) {
    throw ShapeError(fmt::format("[pad] {} has {} axes; given is padding of {}",
                                 text_of_shape(shape()), ndim(), before_after.size()));
  }
  std::vector<std::pair<int64_t, int64_t>> bounds;
  Sizes befores, afters, result;
  for (size_t i = 0; i < view_.rank(); i++) {
    const auto [before, after] = before_after[i];
    const int64_t size = view_.shape[i];
    int64_t padded = 0;
    const bool is_endless = __builtin_add_overflow(size + std::min<int64_t>(before, 0),
                                                   std::max<int64_t>(before, 0), &padded) ||
                            __builtin_add_overflow(padded, after, &padded);
    if (before < -size || after < -size || is_endless || padded < 0) {
      throw ShapeError(fmt::format("[pad] cannot pad axis {} of {} by {} and {}", i,
                                   text_of_shape(shape()), before, after));
    }
    if (before < 0 || after < 0) assume_exact({before, after, size});
    assume_at_most(before < 0 ? before : 0, before);
    assume_at_most(after < 0 ? after : 0, after);
    // What is taken away from one side may be more than the other has: then only zeros are left.
    const int64_t begin = std::min(std::max<int64_t>(-before, 0), size);
    bounds.emplace_back(begin, std::max(begin, size - std::max<int64_t>(-after, 0)));
    befores.push_back(std::max<int64_t>(before, 0));
    afters.push_back(std::max<int64_t>(after, 0));
    result.push_back(padded);
  }
  checked_numel("pad", result);
  const Tensor inside = shrink(bounds);
  const DType type = promote(dtype(), value);
  check_fits("pad", type, value);
  Ref<Value> padded = pad_value(cast_value(read(inside), type), befores, afters);
  const Sizes shape(padded->shape());
  if (bits_of_number(type, value) == 0 || shape == Sizes(inside.shape())) {
    return tensor_of(std::move(padded));
  }
  Device& device = device_of(*this);
  Ref<Value> mask =
      pad_value(full_value("pad", device, dtypes::bool_, inside.shape(), true), befores, afters);
  return tensor_of(apply(Op::WHERE, type, shape, std::move(mask), std::move(padded),
                         constant_value("pad", device, type, value)));
}

namespace {

// Past this, parts are written one after the other into new memory.
constexpr size_t kMostSelectedParts = 8;

// Sizes of the whole; `parts` are at least one.
Sizes cat_shape(std::span<const Tensor> parts, size_t axis) {
  Sizes shape(parts[0].shape());
  for (const Tensor& part : parts.subspan(1)) {
    bool fits = part.shape().size() == shape.size();
    for (size_t i = 0; fits && i < shape.size(); i++) {
      fits = i == axis || part.shape()[i] == shape[i];
    }
    if (!fits) {
      throw ShapeError(fmt::format("[cat] {} and {} differ in more than axis {}",
                                   text_of_shape(parts[0].shape()), text_of_shape(part.shape()),
                                   axis));
    }
    if (__builtin_add_overflow(shape[axis], part.shape()[axis], &shape[axis])) {
      throw ShapeError(fmt::format("[cat] the sizes of axis {} add up to more than 63 bits", axis));
    }
  }
  return shape;
}

// Where the place along the axis is below the end of a part, that part, else those after it.
Ref<Value> select_parts(std::span<const Tensor> parts, size_t axis, DType type, Ints shape) {
  Device& device = device_of(parts[0]);
  Sizes befores(shape.size()), afters(shape.size()), along(shape.size(), 1);
  along[axis] = shape[axis];
  const int64_t count[] = {shape[axis]};
  const DType counter = shape[axis] > INT32_MAX ? dtypes::int64 : dtypes::int32;
  const Ref<Value> place = broadcast(
      reshaped(Value::make(Op::IOTA, counter, device, std::span<const int64_t>(count)), along),
      shape);
  Ref<Value> result;
  int64_t end = shape[axis];
  for (size_t i = parts.size(); i-- > 0;) {
    befores[axis] = end - parts[i].shape()[axis];
    afters[axis] = shape[axis] - end;
    Ref<Value> part = pad_value(cast_value(read(parts[i]), type), befores, afters);
    if (!result) {
      result = std::move(part);
    } else {
      Ref<Value> is_before =
          apply(Op::CMPLT, dtypes::bool_, shape, place, wrapped_constant(device, counter, end));
      result =
          apply(Op::WHERE, type, shape, std::move(is_before), std::move(part), std::move(result));
    }
    end = befores[axis];
  }
  return result;
}

}  // namespace

Tensor Tensor::cat(std::span<const Tensor> parts, int64_t axis) {
  if (parts.empty()) throw ShapeError("[cat] there are no tensors");
  const size_t along = axis_of("cat", axis, parts[0].view().rank());
  const Sizes shape = cat_shape(parts, along);
  DType type = parts[0].dtype();
  std::vector<Tensor> present;
  for (const Tensor& part : parts) {
    check_same_device("cat", parts[0], part);
    type = promote("cat", type, part.dtype());
    if (part.numel() > 0) present.push_back(part);
  }
  checked_numel("cat", shape);
  const bool is_selected = !present.empty() && present.size() <= kMostSelectedParts;
  Tensor whole = is_selected ? tensor_of(select_parts(present, along, type, shape))
                             : empty(shape, type, parts[0].device());
  std::vector<std::pair<int64_t, int64_t>> box;
  for (const int64_t size : shape) box.emplace_back(0, size);
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    box[along] = {begin, begin + part.shape()[along]};
    begin = box[along].second;
    const bool is_there = is_selected && part.numel() > 0;
    if (!is_there) whole.shrink(box).assign(part);
  }
  return whole;
}

Tensor Tensor::roll(Ints shifts, const Axes& axes) const {
  if (!axes) {
    if (shifts.size() != 1) throw ShapeError("[roll] without axes there is one shift");
    return flatten().roll(shifts, std::vector<int64_t>{0}).reshape(shape());
  }
  if (axes->size() != shifts.size()) {
    throw ShapeError(fmt::format("[roll] {} shifts against {} axes", shifts.size(), axes->size()));
  }
  for (const int64_t axis : *axes) axis_of("roll", axis, view_.rank());
  Tensor result = clone();
  for (size_t i = 0; i < shifts.size(); i++) {
    const size_t axis = axis_of("roll", (*axes)[i], view_.rank());
    const int64_t size = view_.shape[axis];
    assume_exact({size, shifts[i]});
    const int64_t shift = size == 0 ? 0 : (shifts[i] % size + size) % size;
    if (shift == 0) continue;
    std::vector<Index> last(axis + 1, Slice{}), first = last;
    last[axis] = Slice{.start = size - shift};
    first[axis] = Slice{.stop = size - shift};
    result = cat({result.at(last), result.at(first)}, int64_t(axis));
  }
  return result;
}

}  // namespace weft
