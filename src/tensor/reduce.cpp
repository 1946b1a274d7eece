// Reductions, and what is made of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "runtime/device.h"
#include "tensor/operand.h"
#include "tensor/promote.h"
#include "value/movement.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

// The axes of a reduction, ascending, each once.
Sizes axes_of(std::string_view what, const Axes& axes, size_t rank) {
  Sizes result;
  if (!axes) {
    for (size_t i = 0; i < rank; i++) result.push_back(int64_t(i));
    return result;
  }
  if (rank == 0 && std::ranges::all_of(*axes, [](int64_t a) { return a == 0 || a == -1; })) {
    return result;  // a scalar has one element along either
  }
  for (const int64_t axis : *axes) result.push_back(int64_t(axis_of(what, axis, rank)));
  std::sort(result.begin(), result.end());
  const auto* twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end()) {
    throw ShapeError(fmt::format("[{}] axis {} is given twice", what, *twice));
  }
  return result;
}

struct ReducedShapes {
  Sizes kept;         // with the reduced axes as 1
  Sizes result;       // as asked
  int64_t count = 1;  // elements that become one
};

ReducedShapes reduced_shapes(Ints shape, const Sizes& axes, bool keepdim) {
  ReducedShapes shapes{.kept = Sizes(shape), .result = {}};
  for (const int64_t axis : axes) {
    shapes.count *= shape[size_t(axis)];
    shapes.kept[size_t(axis)] = 1;
  }
  for (size_t i = 0; i < shape.size(); i++) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), int64_t(i)) != axes.end();
    if (keepdim || !is_reduced) shapes.result.push_back(shapes.kept[i]);
  }
  return shapes;
}

// x, cast to `type` already, reduced. Without elements it is the neutral one.
Ref<Value> reduce_value(Op op, Ref<Value> x, const Sizes& axes, const ReducedShapes& shapes) {
  Device& device = x->device();
  const DType type = x->dtype();
  if (shapes.count == 0) {
    const int64_t identity[] = {int64_t(identity_bits(op, type).value())};
    Ref<Value> neutral =
        broadcast(Value::make(Op::CONST, type, device, {}, std::span<const int64_t>(identity)),
                  shapes.result);
    return Value::make_tied(std::move(neutral), std::move(x));
  }
  Sizes numbers{int64_t(op)};
  for (const int64_t axis : axes) {
    if (x->shape()[size_t(axis)] > 1) numbers.push_back(axis);
  }
  if (numbers.size() > 1) {
    x = Value::make(Op::REDUCE_AXIS, type, device, shapes.kept, numbers, std::move(x));
  }
  return reshaped(std::move(x), shapes.result);
}

constexpr OpSet kReductions = {Op::ADD, Op::MUL, Op::MAX, Op::MIN, Op::AND, Op::OR, Op::XOR};

}  // namespace

Tensor Tensor::reduce(Op op, const Axes& axes, bool keepdim) const {
  if (!kReductions.has(op)) {
    throw Error(fmt::format("[reduce] there is no reduction by {}", name_of(op)));
  }
  const Sizes over = axes_of("reduce", axes, view_.rank());
  const ReducedShapes shapes = reduced_shapes(shape(), over, keepdim);
  const ReducedDTypes types = reduced_dtypes(op, dtype());
  const bool is_empty = shapes.count == 0 && checked_numel("reduce", shapes.result) > 0;
  if (is_empty && (op == Op::MAX || op == Op::MIN)) {
    throw ShapeError(fmt::format("[{}] {} has no element along the reduced axes, and so no {}",
                                 name_of(op), text_of_shape(shape()), name_of(op)));
  }
  Ref<Value> x = cast_value(read(*this), types.accumulator);
  return tensor_of(cast_value(reduce_value(op, std::move(x), over, shapes), types.result));
}

Tensor Tensor::sum(const Axes& axes, bool keepdim) const { return reduce(Op::ADD, axes, keepdim); }
Tensor Tensor::max(const Axes& axes, bool keepdim) const { return reduce(Op::MAX, axes, keepdim); }
Tensor Tensor::min(const Axes& axes, bool keepdim) const { return reduce(Op::MIN, axes, keepdim); }
Tensor Tensor::prod(const Axes& axes, bool keepdim) const { return reduce(Op::MUL, axes, keepdim); }

Tensor Tensor::mean(const Axes& axes, bool keepdim) const {
  const Sizes over = axes_of("mean", axes, view_.rank());
  const ReducedShapes shapes = reduced_shapes(shape(), over, keepdim);
  const DType result = dtype().is_float() ? dtype() : default_float();
  const DType type = reduced_dtypes(Op::ADD, result).accumulator;
  Ref<Value> sum = reduce_value(Op::ADD, cast_value(read(*this), type), over, shapes);
  const Ref<Value> count = wrapped_constant(device_of(*this), type, shapes.count);
  return tensor_of(cast_value(apply(Op::FDIV, type, shapes.result, std::move(sum), count), result));
}

// (..., m, k) @ (..., k, n): products over (..., m, n, k), summed over k. A vector is a matrix with
// one row on the left, one column on the right, which then goes.
Tensor Tensor::matmul(const Tensor& y) const {
  check_same_device("matmul", *this, y);
  if (ndim() == 0 || y.ndim() == 0) throw ShapeError("[matmul] a scalar is no matrix; multiply");
  Tensor a = ndim() == 1 ? unsqueeze(0) : *this;
  Tensor b = y.ndim() == 1 ? y.unsqueeze(1) : y;
  const int64_t k = a.shape().back(), rows = b.shape()[size_t(b.ndim()) - 2];
  if (k != rows) {
    throw ShapeError(fmt::format("[matmul] {} and {} do not fit: {} columns against {} rows",
                                 text_of_shape(shape()), text_of_shape(y.shape()), k, rows));
  }
  const DType type = promote("matmul", dtype(), y.dtype());
  const ReducedDTypes types = reduced_dtypes(Op::ADD, type);
  a = a.unsqueeze(-2);
  b = b.transpose(-1, -2).unsqueeze(-3);
  const Sizes products = broadcast_shapes("matmul", a.shape(), b.shape());
  Ref<Value> product = apply(Op::MUL, types.accumulator, products,
                             broadcast(cast_value(read(a), types.accumulator), products),
                             broadcast(cast_value(read(b), types.accumulator), products));
  const Sizes over{int64_t(products.size()) - 1};
  ReducedShapes shapes = reduced_shapes(products, over, false);
  if (y.ndim() == 1) shapes.result.pop_back();
  if (ndim() == 1) shapes.result.erase(shapes.result.size() - (y.ndim() == 1 ? 1 : 2));
  Ref<Value> sum = reduce_value(Op::ADD, std::move(product), over, shapes);
  return tensor_of(cast_value(std::move(sum), types.result));
}

}  // namespace weft
