// Tensor's methods that read and write elements by integers and masks.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>

#include "interpreter.h"
#include "ir/op.h"
#include "tensor.h"
#include "weft/error.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

// A tensor, or anything that Tensor(...) takes.
Tensor tensor_of(const Tensor& self, nb::handle value) {
  if (const Tensor* t = as_tensor(value)) return *t;
  return tensor_of_data(value, {}, self.device());
}

std::optional<Op> reduction_of(const std::optional<std::string_view>& reduce) {
  if (!reduce) return {};
  if (*reduce == "add") return Op::ADD;
  if (*reduce == "multiply") return Op::MUL;
  throw Error(
      fmt::format("[scatter] there is no reduction \"{}\"; allowed are \"add\", "
                  "\"multiply\" and None",
                  *reduce));
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, nb::handle src,
               std::optional<std::string_view> reduce) {
  const std::optional<Op> op = reduction_of(reduce);
  if (const std::optional<Number> number = as_number(src)) {
    return x.scatter(dim, index, *number, op);
  }
  return x.scatter(dim, index, tensor_of(x, src), op);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, nb::handle value) {
  if (const std::optional<Number> number = as_number(value)) return x.masked_fill(mask, *number);
  return x.masked_fill(mask, tensor_of(x, value));
}

Tensor index_put(const Tensor& x, nb::handle indices, nb::handle values, bool accumulate) {
  std::vector<Index> index;
  for (const nb::handle h : indices) index.emplace_back(ByTensor(tensor_of(x, h)));
  return x.index_put(index, tensor_of(x, values), accumulate);
}

// Writes what a method computes into the tensor itself.
nb::object in_place(nb::handle self, const Tensor& result) {
  as_tensor(self)->assign(result);
  return nb::borrow(self);
}

void bind_along_axis(TensorClass& c) {
  c.def("gather", &Tensor::gather, nb::arg("dim"), nb::arg("index"),
        nb::sig("def gather(self, dim: int, index: Tensor) -> Tensor"),
        R"(The elements along an axis that integers name, one for each of them.

>>> Tensor([[1, 2], [3, 4]]).gather(1, Tensor([[0, 0], [1, 0]])).tolist()
[[1, 1], [4, 3]]
)")
      .def("scatter", scatter, nb::arg("dim"), nb::arg("index"), nb::arg("src"),
           nb::arg("reduce") = nb::none(),
           nb::sig("def scatter(self, dim: int, index: Tensor, src: Tensor | int | float | bool, "
                   "reduce: typing.Literal['add', 'multiply'] | None = None) -> Tensor"),
           R"(A copy with elements of src at places along an axis that integers name.

Of two at one place the last one stays; with "add" or "multiply" all are combined.

>>> Tensor.zeros(2, 3, dtype=dtypes.int32).scatter(1, Tensor([[2], [0]]), Tensor([[7], [8]])).tolist()
[[0, 0, 7], [8, 0, 0]]
>>> Tensor([1, 1, 1]).scatter(0, Tensor([0, 0, 2]), 5, reduce="add").tolist()
[11, 1, 6]
)")
      .def("scatter_reduce", &Tensor::scatter_reduce, nb::arg("dim"), nb::arg("index"),
           nb::arg("src"), nb::arg("reduce"), nb::arg("include_self") = true,
           nb::sig("def scatter_reduce(self, dim: int, index: Tensor, src: Tensor, reduce: "
                   "typing.Literal['sum', 'prod', 'mean', 'amax', 'amin'], "
                   "include_self: bool = True) -> Tensor"),
           R"(A copy with what src has for each place along an axis combined into it.

>>> x, i, v = Tensor([10.0, 20.0]), Tensor([0, 0, 1]), Tensor([1.0, 2.0, 3.0])
>>> x.scatter_reduce(0, i, v, "sum").tolist()
[13.0, 23.0]
>>> x.scatter_reduce(0, i, v, "mean", include_self=False).tolist()
[1.5, 3.0]
)")
      .def("index_select", &Tensor::index_select, nb::arg("dim"), nb::arg("index"),
           nb::sig("def index_select(self, dim: int, index: Tensor) -> Tensor"),
           "The places of an axis that integers name, whole.")
      .def("take", &Tensor::take, nb::arg("index"),
           nb::sig("def take(self, index: Tensor) -> Tensor"),
           R"(Elements, counted in row-major order.

>>> Tensor([[1, 2], [3, 4]]).take(Tensor([3, 0, -2])).tolist()
[4, 1, 3]
)");
}

void bind_sums(TensorClass& c) {
  c.def(
       "index_add",
       [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
          nb::handle alpha) {
         return x.index_add(dim, index, source, number_of(alpha, "index_add"));
       },
       nb::arg("dim"), nb::arg("index"), nb::arg("source"), nb::arg("alpha") = 1,
       nb::sig("def index_add(self, dim: int, index: Tensor, source: Tensor, "
               "alpha: int | float = 1) -> Tensor"),
       R"(A copy with source added to the places of an axis that integers name.

>>> Tensor.zeros(3, 2).index_add(0, Tensor([2, 2]), Tensor([[1.0, 2.0], [10.0, 20.0]])).tolist()
[[0.0, 0.0], [0.0, 0.0], [11.0, 22.0]]
)")
      .def("index_put", index_put, nb::arg("indices"), nb::arg("values"),
           nb::arg("accumulate") = false,
           nb::sig("def index_put(self, indices: collections.abc.Sequence[Tensor], values: Tensor "
                   "| int | float, accumulate: bool = False) -> Tensor"),
           "A copy with copy[indices] = values, or with values added at every index.");
}

void bind_masks(TensorClass& c) {
  c.def(
       "masked_fill", masked_fill, nb::arg("mask"), nb::arg("value"),
       nb::sig("def masked_fill(self, mask: Tensor, value: Tensor | int | float | bool) -> Tensor"),
       R"(A value where a mask holds.

>>> Tensor([1, 2, 3]).masked_fill(Tensor([True, False, True]), 0).tolist()
[0, 2, 0]
)")
      .def(
          "masked_select",
          [](const Tensor& x, const Tensor& mask, std::optional<int64_t> size, nb::handle fill) {
            const Tensor mine = x.snapshot(), where = mask.snapshot();
            const Number number = number_of(fill, "masked_select");
            const InterpreterReleased release;
            return mine.masked_select(where, size, number);
          },
          nb::arg("mask"), nb::arg("size") = nb::none(), nb::arg("fill_value") = 0,
          nb::sig("def masked_select(self, mask: Tensor, size: int | None = None, "
                  "fill_value: int | float | bool = 0) -> Tensor"),
          R"(The elements where a mask holds. The mask is computed at once, unless a size is given.

>>> t = Tensor([5, 6, 7, 8])
>>> t.masked_select(t % 2 == 0).tolist()
[6, 8]
>>> t.masked_select(t % 2 == 0, size=3, fill_value=-1).tolist()
[6, 8, -1]
)")
      .def(
          "nonzero",
          [](const Tensor& x, std::optional<int64_t> size, nb::handle fill) {
            const Tensor mine = x.snapshot();
            const Number number = number_of(fill, "nonzero");
            const InterpreterReleased release;
            return mine.nonzero(size, number);
          },
          nb::arg("size") = nb::none(), nb::arg("fill_value") = 0,
          nb::sig("def nonzero(self, size: int | None = None, fill_value: int = 0) -> Tensor"),
          R"(Where elements are not 0: one row of places for each.

>>> Tensor([[0, 3], [4, 0]]).nonzero().tolist()
[[0, 1], [1, 0]]
)")
      .def("one_hot", &Tensor::one_hot, nb::arg("num_classes"),
           nb::sig("def one_hot(self, num_classes: int) -> Tensor"),
           R"(A new last axis: 1 at the place that the integer names, else 0.

>>> Tensor([2, 0]).one_hot(3).tolist()
[[0, 0, 1], [1, 0, 0]]
)");
}

void bind_in_place(TensorClass& c) {
  c.def(
       "scatter_",
       [](nb::handle self, int64_t dim, const Tensor& index, nb::handle src,
          std::optional<std::string_view> reduce) {
         return in_place(self, scatter(*as_tensor(self), dim, index, src, reduce));
       },
       nb::arg("dim"), nb::arg("index"), nb::arg("src"), nb::arg("reduce") = nb::none(),
       nb::sig("def scatter_(self, dim: int, index: Tensor, src: Tensor | int | float | bool, "
               "reduce: typing.Literal['add', 'multiply'] | None = None) -> Tensor"),
       "scatter into this tensor.")
      .def(
          "index_add_",
          [](nb::handle self, int64_t dim, const Tensor& index, const Tensor& source,
             nb::handle alpha) {
            return in_place(self, as_tensor(self)->index_add(dim, index, source,
                                                             number_of(alpha, "index_add_")));
          },
          nb::arg("dim"), nb::arg("index"), nb::arg("source"), nb::arg("alpha") = 1,
          nb::sig("def index_add_(self, dim: int, index: Tensor, source: Tensor, "
                  "alpha: int | float = 1) -> Tensor"),
          "index_add into this tensor.")
      .def(
          "masked_fill_",
          [](nb::handle self, const Tensor& mask, nb::handle value) {
            return in_place(self, masked_fill(*as_tensor(self), mask, value));
          },
          nb::arg("mask"), nb::arg("value"),
          nb::sig("def masked_fill_(self, mask: Tensor, value: Tensor | int | float | bool) "
                  "-> Tensor"),
          "masked_fill of this tensor.");
}

}  // namespace

void bind_tensor_scatter(TensorClass& c) {
  bind_along_axis(c);
  bind_sums(c);
  bind_masks(c);
  bind_in_place(c);
}

}  // namespace weft::python
