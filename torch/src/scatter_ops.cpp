// Elements along an axis that integers name: gather, scatter and what adds to places.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/gather_meta.h>
#include <ATen/ops/index_add_meta.h>
#include <ATen/ops/index_copy_meta.h>
#include <ATen/ops/index_reduce_meta.h>
#include <ATen/ops/scatter_add_meta.h>
#include <ATen/ops/scatter_meta.h>
#include <ATen/ops/scatter_reduce_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "base/ref.h"
#include "convert.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "tensor/positions.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"
#include "written.h"

namespace weft::pytorch {
namespace {

constexpr auto kNegative = Negative::kOutOfRange;

// A tensor without axes counts as one of a single element.
weft::Tensor with_axis(const weft::Tensor& x) { return x.ndim() == 0 ? x.reshape({1}) : x; }
weft::Tensor axis_handle(const at::Tensor& t) { return with_axis(handle(t)); }
size_t axis_in(const at::Tensor& t, int64_t dim) {
  return size_t(at::maybe_wrap_dim(dim, t.dim()));
}

// What is combined, and how: bools are numbers meanwhile.
void combine(const Chosen& places, const weft::Tensor& value, Op op) {
  if (!places.target.dtype().is_bool()) {
    places.write("scatter", read(value), op);
    return;
  }
  const weft::Tensor numbers = places.target.cast(dtypes::uint8).clone();
  const Op order = op == Op::ADD ? Op::MAX : op == Op::MUL ? Op::MIN : op;
  Chosen{numbers, places.first, places.past, places.index}.write(
      "scatter", read(value.cast(dtypes::uint8)), order);
  weft::Tensor(places.target).assign(numbers.ne(int64_t(0)));
}

// ------------------------------------------------------------------------------------------ gather

// No integer names an element where there is none.
void check_there_are(const at::Tensor& x, size_t axis, const at::Tensor& index) {
  TORCH_CHECK(x.dim() == 0 || x.size(int64_t(axis)) != 0 || index.numel() == 0,
              "index 0 is out of bounds for dimension ", axis, " with size 0");
}

weft::Tensor gather(const Shaped& s, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                    bool /*sparse_grad*/) {
  check_there_are(self, axis_in(self, dim), index);
  const weft::Tensor i = axis_handle(index);
  return chosen_along("gather", axis_handle(self), axis_in(self, dim), i, kNegative)
      .read()
      .reshape(ints(s.out().sizes()));
}

// ----------------------------------------------------------------------------------------- scatter

Chosen places_along(const at::Tensor& out, int64_t dim, const at::Tensor& index) {
  check_there_are(out, axis_in(out, dim), index);
  return chosen_along("scatter", axis_handle(out), axis_in(out, dim), axis_handle(index),
                      kNegative);
}

// The part of src that an index stands for.
weft::Tensor part_for(const at::Tensor& src, const at::Tensor& index) {
  weft::Tensor whole = axis_handle(src);
  if (src.sizes() == index.sizes()) return whole;
  std::vector<std::pair<int64_t, int64_t>> box;
  const weft::Tensor i = axis_handle(index);
  for (const int64_t size : i.shape()) box.emplace_back(0, size);
  return whole.shrink(box);
}

void scatter_src(const at::Tensor& out, int64_t dim, const at::Tensor& index,
                 const at::Tensor& src) {
  if (index.numel() == 0) return;
  places_along(out, dim, index).write("scatter", read(part_for(src, index)));
}

void scatter_value(const at::Tensor& out, int64_t dim, const at::Tensor& index,
                   const at::Scalar& value) {
  if (index.numel() == 0) return;
  places_along(out, dim, index).write("scatter", read(number(value, out.scalar_type())));
}

// "add" or "multiply", which the shape function has checked.
Op op_named(std::string_view reduce) { return reduce == "add" ? Op::ADD : Op::MUL; }

void scatter_reduce_src(const at::Tensor& out, int64_t dim, const at::Tensor& index,
                        const at::Tensor& src, std::string_view reduce) {
  if (index.numel() == 0) return;
  combine(places_along(out, dim, index), part_for(src, index), op_named(reduce));
}

void scatter_reduce_value(const at::Tensor& out, int64_t dim, const at::Tensor& index,
                          const at::Scalar& value, std::string_view reduce) {
  if (index.numel() == 0) return;
  combine(places_along(out, dim, index), number(value, out.scalar_type()), op_named(reduce));
}

void scatter_add(const at::Tensor& out, int64_t dim, const at::Tensor& index,
                 const at::Tensor& src) {
  if (index.numel() == 0) return;
  combine(places_along(out, dim, index), part_for(src, index), Op::ADD);
}

// --------------------------------------------------------------------------- reductions into
// places

Op op_of(std::string_view reduce) {
  if (reduce == "prod") return Op::MUL;
  if (reduce == "amax") return Op::MAX;
  return reduce == "amin" ? Op::MIN : Op::ADD;
}

weft::Tensor identity_of(Op op, DType dtype) {
  const int64_t numbers[] = {int64_t(*identity_bits(op, dtype))};
  return tensor_of(
      Value::make(Op::CONST, dtype, weft_device(), {}, std::span<const int64_t>(numbers)));
}

// Values combined with those at their places; without self, of what `value` has for a place alone.
// A mean divides by how many there were.
void reduce_into(const Chosen& places, const weft::Tensor& value, std::string_view reduce,
                 bool include_self) {
  const weft::Tensor& target = places.target;
  const Op op = op_of(reduce);
  if (target.dtype().is_bool()) {
    if (!include_self) {
      const bool first = op == Op::MUL || op == Op::MIN;
      places.write("scatter", read(number(first, c10::kBool)));
    }
    const Op order = op == Op::MAX ? Op::ADD : op == Op::MIN ? Op::MUL : op;
    combine(places, value, order);
    return;
  }
  if (!include_self) places.write("scatter", read(identity_of(op, target.dtype())));
  places.write("scatter", read(value), op);
  if (reduce != "mean") return;
  const DType counts = target.dtype().is_float() ? dtypes::float32 : dtypes::int64;
  weft::Tensor count =
      weft::Tensor::full(target.shape(), int64_t(include_self ? 1 : 0), counts, target.device());
  Chosen{count, places.first, places.past, places.index}.write(
      "scatter", wrapped_constant(weft_device(), counts, int64_t(1)), Op::ADD);
  if (!include_self) count = count.binary(Op::MAX, int64_t(1));
  const weft::Tensor mean =
      target.dtype().is_float() ? target.div(count) : target.div(count, Rounding::kDown);
  weft::Tensor(target).assign(mean);
}

void scatter_reduce_two(const at::Tensor& out, int64_t dim, const at::Tensor& index,
                        const at::Tensor& src, std::string_view reduce, bool include_self) {
  if (index.numel() == 0) return;
  reduce_into(places_along(out, dim, index), part_for(src, index), reduce, include_self);
}

// ------------------------------------------------------------------------- whole slices of an axis

Chosen slices(const at::Tensor& out, int64_t dim, const at::Tensor& index) {
  const weft::Tensor x = axis_handle(out);
  const auto at = int64_t(axis_in(out, dim));
  return {x, at, at + 1,
          index_of("index", axis_handle(index), at, x.shape()[size_t(at)], kNegative)};
}

void index_add(const at::Tensor& out, int64_t dim, const at::Tensor& index,
               const at::Tensor& source, const at::Scalar& alpha) {
  if (index.numel() == 0) return;
  const weft::Tensor added = axis_handle(source);
  const bool is_one = !alpha.isFloatingPoint() ? alpha.toLong() == 1 : alpha.toDouble() == 1;
  combine(slices(out, dim, index), is_one ? added : added.mul(number(alpha, out.scalar_type())),
          Op::ADD);
}

void index_copy(const at::Tensor& out, int64_t dim, const at::Tensor& index,
                const at::Tensor& source) {
  if (index.numel() == 0) return;
  const Chosen places = slices(out, dim, index);
  places.write("index_copy", read(handle(source).reshape(places.shape())));
}

void index_reduce(const at::Tensor& out, int64_t dim, const at::Tensor& index,
                  const at::Tensor& source, std::string_view reduce, bool include_self) {
  TORCH_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
              "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ",
              reduce, ".");
  if (index.numel() == 0) return;
  reduce_into(slices(out, dim, index), axis_handle(source), reduce, include_self);
}

// ----------------------------------------------------------------------------------------- windows

// Windows of `size` along an axis, `step` apart, lie on it and on a last axis: added where they
// were.
at::Tensor unfold_backward(const at::Tensor& grad, at::IntArrayRef sizes, int64_t dim, int64_t size,
                           int64_t step) {
  TORCH_CHECK_VALUE(step > 0, "step is ", step, " but must be > 0");
  dim = at::maybe_wrap_dim(dim, int64_t(sizes.size()));
  const at::Tensor result = empty(sizes, grad.scalar_type());
  if (result.numel() == 0) return result;
  const weft::Tensor none =
      weft::Tensor::zeros(ints(sizes), dtype_of(grad.scalar_type()), weft_device().name());
  if (grad.numel() == 0 || sizes.empty()) {
    put(result, grad.numel() == 0 ? none : handle(grad).reshape({}));
    return result;
  }
  if (step >= size) {  // none of them touch
    none.unfold(dim, size, step).assign(handle(grad));
  } else {
    const int64_t from[] = {int64_t(sizes.size())}, to[] = {dim + 1};
    const weft::Tensor windows = handle(grad).movedim(Ints(from), Ints(to));
    const weft::Tensor first = positions(weft_device(), grad.size(dim), 0, 2).mul(step);
    const weft::Tensor index = first.add(positions(weft_device(), size, 1, 2));
    Ref<Value> places = index_of("unfold", index, dim, sizes[size_t(dim)], kNegative);
    Chosen{none, dim, dim + 1, std::move(places)}.write("unfold", read(windows), Op::ADD);
  }
  put(result, none);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  structured<at::meta::structured_gather, gather, at::_ops::gather, at::_ops::gather_out>(m);
  native<at::_ops::unfold_backward, unfold_backward>(m);
  written<at::meta::structured_scatter_src, scatter_src, at::_ops::scatter_src,
          at::_ops::scatter__src, at::_ops::scatter_src_out>(m);
  written<at::meta::structured_scatter_value, scatter_value, at::_ops::scatter_value,
          at::_ops::scatter__value, at::_ops::scatter_value_out>(m);
  written<at::meta::structured_scatter_reduce, scatter_reduce_src, at::_ops::scatter_reduce,
          at::_ops::scatter__reduce, at::_ops::scatter_reduce_out>(m);
  written<at::meta::structured_scatter_value_reduce, scatter_reduce_value,
          at::_ops::scatter_value_reduce, at::_ops::scatter__value_reduce,
          at::_ops::scatter_value_reduce_out>(m);
  written<at::meta::structured_scatter_add, scatter_add, at::_ops::scatter_add,
          at::_ops::scatter_add_, at::_ops::scatter_add_out>(m);
  written<at::meta::structured_scatter_reduce_two, scatter_reduce_two, at::_ops::scatter_reduce_two,
          at::_ops::scatter_reduce__two, at::_ops::scatter_reduce_two_out>(m);
  written<at::meta::structured_index_add, index_add, at::_ops::index_add, at::_ops::index_add_,
          at::_ops::index_add_out>(m);
  written<at::meta::structured_index_copy, index_copy, at::_ops::index_copy, at::_ops::index_copy_,
          at::_ops::index_copy_out>(m);
  written<at::meta::structured_index_reduce, index_reduce, at::_ops::index_reduce,
          at::_ops::index_reduce_, at::_ops::index_reduce_out>(m);
}

}  // namespace
}  // namespace weft::pytorch
