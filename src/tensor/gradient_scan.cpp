// The gradient of a SCAN: scans from the other end.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/op.h"
#include "tensor/gradient_rules.h"
#include "tensor/operand.h"
#include "value/factor.h"
#include "value/movement.h"
#include "value/value.h"
#include "weft/view.h"

namespace weft {
namespace {

Ref<Value> move(Op op, Ref<Value> x, Ints shape, Ints numbers) {
  const Movement step{op, Sizes(shape), Sizes(numbers)};
  return moved(std::move(x), std::span(&step, 1));
}

Ref<Value> mul(const Ref<Value>& x, const Ref<Value>& y) {
  return apply(Op::MUL, x->dtype(), x->shape(), x, y);
}

// One axis of Values of one shape.
class Line {
 public:
  Line(Ints shape, int64_t axis) : shape_(shape), axis_(axis) {}

  Ref<Value> flip(Ref<Value> x) const { return move(Op::FLIP, std::move(x), shape_, Sizes{axis_}); }
  // All elements but this many at both ends.
  Ref<Value> without(Ref<Value> x, int64_t first, int64_t last) const {
    Sizes numbers(shape_.size(), 0), part(shape_);
    part[size_t(axis_)] -= first + last;
    numbers.append(shape_);
    numbers[size_t(axis_)] = first;
    numbers[shape_.size() + size_t(axis_)] -= last;
    return move(Op::SHRINK, std::move(x), part, numbers);
  }
  // Zeros in their place.
  Ref<Value> with_zeros(Ref<Value> x, int64_t first, int64_t last) const {
    Sizes numbers(2 * shape_.size(), 0);
    numbers[size_t(axis_)] = first;
    numbers[shape_.size() + size_t(axis_)] = last;
    return move(Op::PAD, std::move(x), shape_, numbers);
  }
  // r[i] = g[i] + factor[i + 1] * r[i + 1]
  Ref<Value> back(const Ref<Value>& g, const Ref<Value>& factor) const {
    const Sizes numbers{int64_t(Op::ADD), axis_};
    Ref<Value> next;
    if (factor) next = flip(with_zeros(without(factor, 1, 0), 0, 1));
    return flip(
        Value::make(Op::SCAN, g->dtype(), g->device(), shape_, numbers, flip(g), std::move(next)));
  }
  // r[i] * before[i - 1], and 0 for the first.
  Ref<Value> times_before(const Ref<Value>& r, const Ref<Value>& before) const {
    return with_zeros(mul(without(r, 1, 0), without(before, 0, 1)), 1, 0);
  }

 private:
  Sizes shape_;
  int64_t axis_;
};

}  // namespace

Gradients gradients_of_scan(const StepBack& s) {
  const Op op = Op(s.value().numbers()[0]);
  const Line line(s.shape(), s.value().numbers()[1]);
  const bool has_factor = s.value().sources().size() > 1;
  if (op == Op::ADD && !has_factor) return {line.back(s.gradient(), {})};
  if (op == Op::ADD) {
    const Ref<Value> by_x = line.back(s.gradient(), s.operand(1));
    return {by_x, s.wants(1) ? line.times_before(by_x, s.result()) : Ref<Value>()};
  }
  if (op == Op::MUL) {
    const int64_t rest = s.shape()[size_t(s.value().numbers()[1])] - 1;
    const Ref<Value> r = line.back(s.gradient(), s.operand(0));
    const Ref<Value> of_first = line.with_zeros(line.without(r, 0, rest), 0, rest);
    return {apply(Op::ADD, s.dtype(), s.shape(), of_first, line.times_before(r, s.result()))};
  }
  throw Error(fmt::format("[gradient] a scan by {} has no gradient", name_of(op)));
}

}  // namespace weft
