// Gradients through strided views and writes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tensor/gradient_rules.h"
#include "tensor/operand.h"
#include "value/factor.h"
#include "value/movement.h"
#include "value/number_watch.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/view.h"

namespace weft {
namespace {

Ref<Value> move(Op op, Ref<Value> x, Ints shape, Ints numbers = {}) {
  const Movement step{op, Sizes(shape), Sizes(numbers)};
  return moved(std::move(x), std::span(&step, 1));
}

// Zeros around the last axis.
Ref<Value> pad_last(Ref<Value> x, int64_t before, int64_t after) {
  Sizes shape(x->shape());
  const size_t last = shape.size() - 1;
  if (before == 0 && after == 0) return x;
  shape[last] = x->shape()[last] + before + after;
  Sizes numbers(shape.size()), ends(shape.size());
  numbers[last] = before;
  ends[last] = after;
  numbers.append(ends);
  return move(Op::PAD, std::move(x), shape, numbers);
}

// The elements of the last axis from `begin` to `end`.
Ref<Value> shrink_last(Ref<Value> x, int64_t begin, int64_t end) {
  Sizes shape(x->shape());
  const size_t last = shape.size() - 1;
  if (begin == 0 && end == x->shape()[last]) return x;
  Sizes numbers(shape.size()), ends(shape);
  numbers[last] = begin;
  ends[last] = end;
  shape[last] = end - begin;
  numbers.append(ends);
  return move(Op::SHRINK, std::move(x), shape, numbers);
}

Ref<Value> sum_axis(Ref<Value> x, size_t axis) {
  Sizes kept(x->shape()), left;
  kept[axis] = 1;
  for (size_t i = 0; i < kept.size(); i++) {
    if (i != axis) left.push_back(x->shape()[i]);
  }
  if (x->shape()[axis] > 1) {
    const int64_t numbers[] = {int64_t(Op::ADD), int64_t(axis)};
    Device& device = x->device();
    const DType dtype = x->dtype(), in = dtype.bits() < 32 ? dtypes::float32 : dtype;
    x = cast_value(Value::make(Op::REDUCE_AXIS, in, device, kept, std::span<const int64_t>(numbers),
                               cast_value(std::move(x), in)),
                   dtype);
  }
  return reshaped(std::move(x), left);
}

// A value laid out by a view: element i of it belongs to element offset + sum of i * strides.
class Laid {
 public:
  Laid(Ref<Value> x, View view) : x_(std::move(x)), view_(std::move(view)) {}

  // Adds up the elements that belong to one: afterwards the view touches each once.
  void add_up() {
    for (size_t i = view_.rank(); i-- > 0;) {
      if (view_.shape[i] == 1 || view_.strides[i] == 0) drop(i);
    }
    for (size_t i = 0; i < view_.rank(); i++) {
      if (view_.strides[i] < 0) flip(i);
    }
    while (!is_injective(view_)) {
      assume_exact(view_.shape);
      assume_exact(view_.strides);
      merge(overlapping_axes());
    }
  }

  // Zeros where nothing belongs, `numel` elements.
  Ref<Value> spread(int64_t numel) {
    Device& device = x_->device();
    const DType dtype = x_->dtype();
    const int64_t shape[] = {numel};
    const Ints flat{std::span<const int64_t>(shape)};
    if (view_.numel() == numel && is_dense(view_)) {
      return moved(std::move(x_), factor_inverse(view_, flat));
    }
    Sizes numbers = view_.shape;
    numbers.append(view_.strides);
    numbers.push_back(view_.offset);
    Ref<Value> zeros = broadcast(wrapped_constant(device, dtype, 0.0), flat);
    return Value::make(Op::AFTER, dtype, device, flat, numbers, std::move(zeros), std::move(x_));
  }

 private:
  void drop(size_t axis) {
    x_ = sum_axis(std::move(x_), axis);
    view_.shape.erase(axis);
    view_.strides.erase(axis);
  }

  void flip(size_t axis) {
    const int64_t axes[] = {int64_t(axis)};
    const Sizes shape(x_->shape());
    x_ = move(Op::FLIP, std::move(x_), shape, std::span<const int64_t>(axes));
    view_.offset += (view_.shape[axis] - 1) * view_.strides[axis];
    view_.strides[axis] = -view_.strides[axis];
  }

  // Two axes that overlap, the longer one first.
  std::array<size_t, 2> overlapping_axes() const {
    const auto [a, b] = finest_axes();
    return view_.shape[a] < view_.shape[b] ? std::array{b, a} : std::array{a, b};
  }

  // The axis with the smallest stride, and the next larger that its elements reach past; where
  // there is none, the two with the smallest strides that are not one after the other.
  std::array<size_t, 2> finest_axes() const {
    Sizes order;
    for (size_t i = 0; i < view_.rank(); i++) order.push_back(int64_t(i));
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return view_.strides[size_t(a)] < view_.strides[size_t(b)];
    });
    for (size_t i = 0; i < order.size(); i++) {
      const size_t fine = size_t(order[i]);
      const int64_t reach = (view_.shape[fine] - 1) * view_.strides[fine];
      for (size_t j = i + 1; j < order.size(); j++) {
        const size_t coarse = size_t(order[j]);
        if (view_.strides[coarse] <= reach && view_.strides[coarse] % view_.strides[fine] == 0) {
          return {fine, coarse};
        }
      }
    }
    return {size_t(order[0]), size_t(order[1])};
  }

  // Two axes become one: element t of it is the sum over a * i + b * j == t. With j as rows, each
  // row is put b further to the right than the one above it:
  //   rows of length n, read as rows of length n - b, from the end of the zeros before the first
  //   on. There are so many zeros around each row that what is read lies in it.
  void merge(std::array<size_t, 2> axes) {
    const auto [of_columns, of_rows] = axes;
    const int64_t step = std::gcd(view_.strides[of_columns], view_.strides[of_rows]);
    const int64_t a = view_.strides[of_columns] / step, b = view_.strides[of_rows] / step;
    const int64_t columns = view_.shape[of_columns], rows = view_.shape[of_rows];
    const int64_t size = (columns - 1) * a + (rows - 1) * b + 1;
    to_the_end(of_rows, of_columns);
    Sizes shape(x_->shape());
    const size_t last = shape.size() - 1;
    if (a > 1) {  // zeros between the columns
      shape.push_back(1);
      x_ = pad_last(reshaped(std::move(x_), shape), 0, a - 1);
      shape.pop_back();
      shape[last] = columns * a;
      x_ = shrink_last(reshaped(std::move(x_), shape), 0, columns * a - (a - 1));
    }
    const int64_t zeros = (rows - 1) * b, length = size + zeros;
    x_ = pad_last(std::move(x_), zeros, zeros);
    shape.pop_back();
    shape[last - 1] = rows * length;
    x_ = reshaped(std::move(x_), shape);
    x_ = shrink_last(std::move(x_), zeros, zeros + rows * (length - b));
    shape[last - 1] = rows;
    shape.push_back(length - b);
    x_ = shrink_last(reshaped(std::move(x_), shape), 0, size);
    x_ = sum_axis(std::move(x_), last - 1);
    view_.shape.pop_back();
    view_.strides.pop_back();
    view_.shape.back() = size;
    view_.strides.back() = step;
  }

  // Makes two axes the last ones.
  void to_the_end(size_t first, size_t second) {
    Sizes order;
    for (size_t i = 0; i < view_.rank(); i++) {
      if (i != first && i != second) order.push_back(int64_t(i));
    }
    order.push_back(int64_t(first));
    order.push_back(int64_t(second));
    View view{view_.dtype, {}, {}, view_.offset};
    for (const int64_t axis : order) {
      view.shape.push_back(view_.shape[size_t(axis)]);
      view.strides.push_back(view_.strides[size_t(axis)]);
    }
    x_ = move(Op::PERMUTE, std::move(x_), view.shape, order);
    view_ = std::move(view);
  }

  Ref<Value> x_;
  View view_;
};

}  // namespace

Ref<Value> gradient_through_view(Ref<Value> gradient, const View& view, int64_t numel) {
  Laid laid(std::move(gradient), view);
  laid.add_up();
  return laid.spread(numel);
}

namespace {

// Where the view touches an element twice, the last one wrote it: numbers written through the view
// and read back say which one that was.
Ref<Value> winners(const Value& write, const View& view) {
  Device& device = write.device();
  const int64_t count[] = {view.numel()}, numel[] = {write.numel()};
  const Ints flat{std::span<const int64_t>(numel)};
  const DType counter = dtypes::int64;
  const Ref<Value> places =
      reshaped(Value::make(Op::IOTA, counter, device, std::span<const int64_t>(count)), view.shape);
  Sizes numbers = view.shape;
  numbers.append(view.strides);
  numbers.push_back(view.offset);
  Ref<Value> none = broadcast(wrapped_constant(device, counter, int64_t(-1)), flat);
  Ref<Value> last = Value::make(Op::AFTER, counter, device, flat, numbers, std::move(none), places);
  return apply(Op::CMPEQ, dtypes::bool_, view.shape, view_of(std::move(last), view), places);
}

}  // namespace

// old with `value` in its place: what was written over has no gradient.
Gradients gradients_of_write(const StepBack& step) {
  const Value& write = step.value();
  const Ref<Value>& g = step.gradient();
  if (write.is_untaped()) return {g};
  if (write.scatter()) return gradients_of_scatter(step);
  const View view = write.written();
  const Ref<Value> zero = wrapped_constant(step.device(), step.dtype(), 0.0);
  Gradients by;
  if (step.wants(0)) {
    by[0] =
        Value::make(Op::AFTER, step.dtype(), step.device(), step.shape(), write.numbers(), g, zero);
  }
  if (step.wants(1)) {
    by[1] = view_of(g, view);
    if (has_overlap(view)) {
      by[1] = apply(Op::WHERE, step.dtype(), view.shape, winners(write, view), by[1], zero);
    }
  }
  return by;
}

}  // namespace weft
