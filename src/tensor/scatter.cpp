// Elements along an axis by integers: gather, scatter and what is made of them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "runtime/device.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "value/number_watch.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

// A tensor without axes counts as one of a single element.
Tensor with_axis(const Tensor& x) { return x.ndim() == 0 ? x.reshape({1}) : x; }

void check_fits(std::string_view what, Ints index, Ints other, std::string_view name,
                std::optional<size_t> except = {}) {
  bool fits = index.size() == other.size();
  for (size_t i = 0; fits && i < index.size(); i++) {
    fits = index[i] <= other[i] || i == except;
  }
  for (size_t i = 0; fits && i < index.size(); i++) {
    if (i != except) assume_at_most(index[i], other[i]);
  }
  if (fits) return;
  throw ShapeError(fmt::format("[{}] an index of shape {} is larger than {} of shape {}", what,
                               text_of_shape(index), name, text_of_shape(other)));
}

// The part of src that an index stands for.
Tensor part_for(std::string_view what, const Tensor& src, const Tensor& index) {
  check_fits(what, index.shape(), src.shape(), "src");
  std::vector<std::pair<int64_t, int64_t>> box;
  for (const int64_t size : index.shape()) box.emplace_back(0, size);
  return src.shrink(box);
}

void check_same_dtype(std::string_view what, const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return;
  throw DTypeError(fmt::format("[{}] src has dtype {}, the tensor {}", what, b.dtype().name(),
                               a.dtype().name()));
}

void check_reduction(std::string_view what, const Tensor& x, Op op) {
  const bool is_known = op == Op::ADD || op == Op::MUL || op == Op::MAX || op == Op::MIN;
  const bool is_order = op == Op::MAX || op == Op::MIN;
  if (is_known && !(is_order && x.dtype().is_bool())) return;
  throw DTypeError(fmt::format("[{}] there is no {} of {}", what, name_of(op), x.dtype().name()));
}

// A copy to write to.
Tensor own_copy(const Tensor& x) { return x.clone(); }

}  // namespace

Chosen chosen_along(std::string_view what, const Tensor& target, size_t axis, const Tensor& index,
                    Negative negative) {
  const size_t rank = target.view().rank();
  check_same_device(what, target, index);
  check_fits(what, index.shape(), target.shape(), "the tensor", axis);
  return {target, 0, int64_t(rank), index_along(what, index, axis, target.shape(), negative)};
}

Tensor Tensor::gather(int64_t dim, const Tensor& index) const {
  const Tensor x = with_axis(*this), i = with_axis(index);
  const size_t axis = axis_of("gather", dim, x.view().rank());
  return chosen_along("gather", x, axis, i).read().reshape(index.shape());
}

Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src,
                       std::optional<Op> reduce) const {
  Tensor out = own_copy(*this);
  const Tensor x = with_axis(out), i = with_axis(index);
  const size_t axis = axis_of("scatter", dim, x.view().rank());
  check_same_device("scatter", *this, src);
  check_same_dtype("scatter", *this, src);
  if (reduce) check_reduction("scatter", *this, *reduce);
  const Tensor part = part_for("scatter", with_axis(src), i);
  chosen_along("scatter", x, axis, i).write("scatter", read(part), reduce);
  return out;
}

Tensor Tensor::scatter(int64_t dim, const Tensor& index, Number src,
                       std::optional<Op> reduce) const {
  Tensor out = own_copy(*this);
  const Tensor x = with_axis(out), i = with_axis(index);
  const size_t axis = axis_of("scatter", dim, x.view().rank());
  if (reduce) check_reduction("scatter", *this, *reduce);
  Ref<Value> value = constant_value("scatter", device_of(x), dtype(), src);
  chosen_along("scatter", x, axis, i).write("scatter", std::move(value), reduce);
  return out;
}

namespace {

struct NamedOp {
  std::string_view name;
  Op op;
};
constexpr std::array kReductions = {NamedOp{"sum", Op::ADD}, NamedOp{"prod", Op::MUL},
                                    NamedOp{"mean", Op::ADD}, NamedOp{"amax", Op::MAX},
                                    NamedOp{"amin", Op::MIN}};

Ref<Value> constant_bits_of(Device& device, DType dtype, uint64_t bits) {
  const int64_t numbers[] = {int64_t(bits)};
  return Value::make(Op::CONST, dtype, device, {}, std::span<const int64_t>(numbers));
}

}  // namespace

Tensor Tensor::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src,
                              std::string_view reduce, bool include_self) const {
  constexpr std::string_view what = "scatter_reduce";
  const auto* const how = std::ranges::find(kReductions, reduce, &NamedOp::name);
  if (how == kReductions.end()) {
    throw Error(
        fmt::format("[scatter_reduce] there is no reduction \"{}\"; allowed are sum, prod, "
                    "mean, amax and amin",
                    reduce));
  }
  Tensor out = own_copy(*this);
  const Tensor x = with_axis(out), i = with_axis(index);
  const size_t axis = axis_of(what, dim, x.view().rank());
  check_same_device(what, *this, src);
  check_same_dtype(what, *this, src);
  check_reduction(what, *this, how->op);
  const Tensor part = part_for(what, with_axis(src), i);
  const Chosen places = chosen_along(what, x, axis, i);
  if (!include_self) {
    places.write(what, constant_bits_of(device_of(x), dtype(), *identity_bits(how->op, dtype())));
  }
  places.write(what, read(part), how->op);
  if (reduce != "mean") return out;
  Tensor count = full(x.shape(), int64_t(include_self ? 1 : 0), dtype(), device());
  Chosen{count, places.first, places.past, places.index}.write(
      what, wrapped_constant(device_of(x), dtype(), int64_t(1)), Op::ADD);
  count = count.reshape(shape());
  if (!include_self) count = count.binary(Op::MAX, int64_t(1));
  return out.binary(dtype().is_float() ? Op::FDIV : Op::IDIV, count);
}

Tensor Tensor::index_select(int64_t dim, const Tensor& index) const {
  const Tensor x = with_axis(*this);
  const size_t axis = axis_of("index_select", dim, x.view().rank());
  check_same_device("index_select", x, index);
  const int64_t at = int64_t(axis);
  return Chosen{x, at, at + 1, index_of("index_select", index, at, x.shape()[axis])}.read();
}

Tensor Tensor::take(const Tensor& index) const {
  check_same_device("take", *this, index);
  const Tensor x = with_axis(*this);
  return Chosen{x, 0, x.ndim(), index_of("take", index, 0, x.numel())}.read();
}

Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source,
                         Number alpha) const {
  constexpr std::string_view what = "index_add";
  Tensor out = own_copy(*this);
  const Tensor x = with_axis(out);
  const size_t axis = axis_of(what, dim, x.view().rank());
  check_same_device(what, *this, index);
  check_same_device(what, *this, source);
  check_same_dtype(what, *this, source);
  const Tensor i = with_axis(index);
  if (i.ndim() != 1) {
    throw ShapeError(fmt::format("[index_add] an index has shape {}; it must have one axis",
                                 text_of_shape(index.shape())));
  }
  const int64_t at = int64_t(axis);
  const Chosen places{x, at, at + 1, index_of(what, i, at, x.shape()[axis])};
  if (Sizes(with_axis(source).shape()) != places.shape()) {
    throw ShapeError(fmt::format("[index_add] source has shape {}; it must have {}",
                                 text_of_shape(source.shape()), text_of_shape(places.shape())));
  }
  const bool is_one = std::holds_alternative<int64_t>(alpha) && std::get<int64_t>(alpha) == 1;
  const Tensor scaled = is_one ? source : source.mul(alpha).cast(dtype());
  places.write(what, read(with_axis(scaled)), Op::ADD);
  return out;
}

Tensor Tensor::index_put(Indices index, const Tensor& value, bool accumulate) const {
  Tensor out = own_copy(*this);
  if (!accumulate || !has_tensors(index)) {
    out.set(index, accumulate ? out.at(index).add(value) : value);
    return out;
  }
  check_same_device("index_put", *this, value);
  choose(out, index).write("index_put", read(value), Op::ADD);
  return out;
}

namespace {

void check_is_mask(std::string_view what, const Tensor& mask) {
  if (mask.dtype().is_bool()) return;
  throw DTypeError(
      fmt::format("[{}] a mask has dtype {}; it must be bool", what, mask.dtype().name()));
}

}  // namespace

Tensor Tensor::masked_fill(const Tensor& mask, Number value) const {
  check_is_mask("masked_fill", mask);
  return where(mask, full({}, value, dtype(), device()), *this);
}

Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& value) const {
  check_is_mask("masked_fill", mask);
  return where(mask, value.cast(dtype()), *this);
}

Tensor Tensor::one_hot(int64_t num_classes) const {
  if (!dtype().is_int()) {
    throw DTypeError(
        fmt::format("[one_hot] the tensor has dtype {}; it must have integers", dtype().name()));
  }
  if (num_classes < 0) {
    throw ShapeError(fmt::format("[one_hot] {} classes; allowed are 0 or more", num_classes));
  }
  const Tensor given = as_classes("one_hot", *this, int64_t(ndim()), num_classes);
  const Tensor classes = arange(int64_t(0), num_classes, int64_t(1), dtypes::int32, device());
  return given.unsqueeze(-1).binary(Op::CMPEQ, classes).cast(dtypes::int32);
}

}  // namespace weft
