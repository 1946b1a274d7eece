// Tensor's parts and arrangements, grids and triangles, and moves between devices.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "tensor.h"
#include "tensor/promote.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::python {
namespace {

using Device = std::optional<std::string>;

bool is_sequence(nb::handle value) {
  return PyTuple_Check(value.ptr()) || PyList_Check(value.ptr());
}

DType dtype_or_float(nb::handle value) {
  return optional_dtype_of(value).value_or(default_float());
}

nb::tuple split(const Tensor& x, nb::handle sizes, int64_t dim) {
  if (is_sequence(sizes)) return tuple_of_tensors(x.split(*axes_of(sizes, "split"), dim));
  return tuple_of_tensors(x.split(int_of(sizes, "split"), dim));
}

// Sizes with None for those that stay.
std::vector<int64_t> partial_shape_of(nb::handle first, const nb::args& more,
                                      std::string_view what) {
  std::vector<int64_t> sizes;
  const auto add = [&](nb::handle h) { sizes.push_back(h.is_none() ? -1 : int_of(h, what)); };
  if (is_sequence(first)) {
    for (const nb::handle h : first) add(h);
  } else {
    add(first);
  }
  for (const nb::handle h : more) add(h);
  return sizes;
}

// 0.0 as 0 for integers, so that padding with it makes no floats of them.
Number in_kind_of(DType dtype, Number number) {
  const double value = std::visit([](auto n) { return double(n); }, number);
  return !dtype.is_float() && value == 0 ? Number(false) : number;
}

Tensor rearrange(const Tensor& x, std::string_view formula, const nb::kwargs& sizes) {
  std::vector<std::pair<std::string, int64_t>> named;
  for (const auto& [name, size] : sizes) {
    named.emplace_back(nb::cast<std::string>(name), int_of(size, "rearrange"));
  }
  return x.rearrange(formula, named);
}

nb::object sequential(nb::handle x, nb::handle functions) {
  nb::object result = nb::borrow(x);
  for (const nb::handle f : functions) result = f(result);
  return result;
}

Tensor transposed(const Tensor& x) {
  if (x.ndim() > 2) throw ShapeError("[t] a vector or a matrix is needed; permute takes any axes");
  return x.ndim() < 2 ? x : x.transpose();
}

void bind_formulas(TensorClass& c) {
  c.def_static(
       "eye",
       [](int64_t n, std::optional<int64_t> m, nb::handle dtype, const Device& device,
          std::optional<bool> requires_grad) {
         return made(Tensor::eye(n, m, dtype_or_float(dtype), device.value_or("")), requires_grad);
       },
       nb::arg("n"), nb::arg("m") = nb::none(), nb::arg("dtype") = nb::none(),
       nb::arg("device") = nb::none(), nb::arg("requires_grad") = nb::none(),
       nb::sig("def eye(n: int, m: int | None = None, dtype: " WEFT_DTYPE
               " = None, device: str | None = None, requires_grad: bool | None = None) -> Tensor"),
       R"(1 on the diagonal, 0 elsewhere; n rows and m columns, or as many as rows.

>>> Tensor.eye(2, 3, dtype=dtypes.int32).tolist()
[[1, 0, 0], [0, 1, 0]]
)")
      .def_static(
          "linspace",
          [](nb::handle start, nb::handle stop, nb::handle steps, nb::handle dtype,
             const Device& device, std::optional<bool> requires_grad) {
            return made(Tensor::linspace(number_of(start, "linspace"), number_of(stop, "linspace"),
                                         int_of(steps, "linspace"), dtype_or_float(dtype),
                                         device.value_or("")),
                        requires_grad);
          },
          nb::arg("start"), nb::arg("stop"), nb::arg("steps"), nb::arg("dtype") = nb::none(),
          nb::arg("device") = nb::none(), nb::arg("requires_grad") = nb::none(),
          nb::sig("def linspace(start: " WEFT_NUMBER ", stop: " WEFT_NUMBER
                  ", steps: int, dtype: " WEFT_DTYPE
                  " = None, device: str | None = None, requires_grad: bool | None = None) -> "
                  "Tensor"),
          R"(`steps` numbers from start to stop, both included, equally far apart.

>>> Tensor.linspace(0, 1, 5).tolist()
[0.0, 0.25, 0.5, 0.75, 1.0]
)")
      .def(
          "meshgrid",
          [](nb::handle first, const nb::args& more, std::string_view indexing) {
            return tuple_of_tensors(
                Tensor::meshgrid(tensors_of(first, more, "meshgrid"), indexing));
          },
          nb::arg("args"), nb::kw_only(), nb::arg("indexing") = "ij",
          nb::sig("def meshgrid(self, *args: Tensor | collections.abc.Sequence[Tensor], indexing: "
                  "str = "
                  "'ij') -> tuple[Tensor, ...]"),
          R"(Vectors as the coordinates of a grid: views. Axis i is vector i; 'xy' swaps the first two.

>>> x, y = Tensor([1, 2]).meshgrid(Tensor([3, 4, 5]))
>>> x.tolist(), y.tolist()
([[1, 1, 1], [2, 2, 2]], [[3, 4, 5], [3, 4, 5]])
)")
      .def("tril", &Tensor::tril, nb::arg("diagonal") = 0,
           R"(The lower triangle of the last two axes; what lies above the diagonal is 0.

>>> Tensor([[1, 2], [3, 4]]).tril().tolist(), Tensor([[1, 2], [3, 4]]).tril(-1).tolist()
([[1, 0], [3, 4]], [[0, 0], [3, 0]])
)")
      .def("triu", &Tensor::triu, nb::arg("diagonal") = 0,
           "The upper triangle of the last two axes; what lies below the diagonal is 0.")
      .def("diag", &Tensor::diag, nb::arg("diagonal") = 0,
           R"(A matrix with this vector on a diagonal; of a matrix, the diagonal (a view).

>>> Tensor([1, 2]).diag().tolist(), Tensor([[1, 2], [3, 4]]).diag().tolist()
([[1, 0], [0, 2]], [1, 4])
)");
}

void bind_parts(TensorClass& c) {
  c.def("split", split, nb::arg("sizes"), nb::arg("dim") = 0,
        nb::sig("def split(self, sizes: " WEFT_SIZES ", dim: int = 0) -> tuple[Tensor, ...]"),
        R"(Parts along an axis, of the sizes given, or of one size (the last may be smaller): views.

>>> [part.tolist() for part in Tensor.arange(5).split(2)]
[[0, 1], [2, 3], [4]]
>>> [part.shape for part in Tensor.ones(2, 5).split((1, 4), dim=1)]
[(2, 1), (2, 4)]
)")
      .def(
          "chunk",
          [](const Tensor& x, int64_t chunks, int64_t dim) {
            return tuple_of_tensors(x.chunk(chunks, dim));
          },
          nb::arg("chunks"), nb::arg("dim") = 0,
          nb::sig("def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]"),
          R"(At most so many parts along an axis, all but the last of one size: views.

>>> [part.tolist() for part in Tensor.arange(5).chunk(3)]
[[0, 1], [2, 3], [4]]
)")
      .def(
          "repeat",
          [](const Tensor& x, nb::handle first, const nb::args& more) {
            return x.repeat(ints_of(first, more, "repeat"));
          },
          nb::arg("repeats"), nb::arg("args"),
          nb::sig("def repeat(self, repeats: " WEFT_SIZES ", *args: int) -> Tensor"),
          R"(All of it so often along every axis; new axes come first.

>>> Tensor([1, 2]).repeat(2, 2).tolist()
[[1, 2, 1, 2], [1, 2, 1, 2]]
)")
      .def("repeat_interleave", &Tensor::repeat_interleave, nb::arg("repeats"),
           nb::arg("dim") = nb::none(),
           nb::sig("def repeat_interleave(self, repeats: int, dim: int | None = None) -> Tensor"),
           R"(Every element so often along an axis; without one, of the flat tensor.

>>> Tensor([1, 2]).repeat_interleave(2).tolist()
[1, 1, 2, 2]
)")
      .def(
          "unflatten",
          [](const Tensor& x, int64_t dim, nb::handle sizes) {
            return x.unflatten(dim, *axes_of(sizes, "unflatten"));
          },
          nb::arg("dim"), nb::arg("sizes"),
          nb::sig("def unflatten(self, dim: int, sizes: " WEFT_SIZES ") -> Tensor"),
          R"(One axis as several; one size may be -1.

>>> Tensor.ones(2, 6).unflatten(1, (3, -1)).shape
(2, 3, 2)
)")
      .def(
          "pad_to",
          [](const Tensor& x, nb::handle shape, const nb::args& more, nb::handle value) {
            return x.pad_to(partial_shape_of(shape, more, "pad_to"),
                            in_kind_of(x.dtype(), number_of(value, "pad_to")));
          },
          nb::arg("shape").none(), nb::arg("args"), nb::kw_only(), nb::arg("value") = 0,
          nb::sig(
              "def pad_to(self, shape: int | None | collections.abc.Sequence[int | None], *args: "
              "int | None, value: " WEFT_NUMBER " = 0) -> Tensor"),
          R"(More elements at the ends, up to these sizes; None keeps one.

>>> Tensor([[1, 2]]).pad_to(2, None).tolist()
[[1, 2], [0, 0]]
)")
      .def(
          "shrink_to",
          [](const Tensor& x, nb::handle shape, const nb::args& more) {
            return x.shrink_to(partial_shape_of(shape, more, "shrink_to"));
          },
          nb::arg("shape").none(), nb::arg("args"),
          nb::sig("def shrink_to(self, shape: int | None | collections.abc.Sequence[int | None], "
                  "*args: int | None) -> Tensor"),
          R"(The first elements of every axis: a view. None keeps a size.

>>> Tensor([[1, 2], [3, 4]]).shrink_to(None, 1).tolist()
[[1], [3]]
)");
}

void bind_axes(TensorClass& c) {
  c.def("rearrange", rearrange, nb::arg("formula"), nb::arg("sizes"),
        nb::sig("def rearrange(self, formula: str, **sizes: int) -> Tensor"),
        R"(Axes by name: permuted, split and merged, as in einops.

>>> x = Tensor.arange(12).reshape(2, 6)
>>> x.rearrange('b (h w) -> h (b w)', h=3).tolist()
[[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]
>>> x.rearrange("... c -> c ... 1").shape
(6, 2, 1)
)")
      .def(
          "movedim",
          [](const Tensor& x, nb::handle source, nb::handle destination) {
            return x.movedim(*axes_of(source, "movedim"), *axes_of(destination, "movedim"));
          },
          nb::arg("source"), nb::arg("destination"),
          nb::sig("def movedim(self, source: " WEFT_SIZES ", destination: " WEFT_SIZES
                  ") -> Tensor"),
          "Axes at other places; the others keep their order: a view.")
      .def("swapaxes", &Tensor::transpose, nb::arg("axis0"), nb::arg("axis1"),
           "Two axes exchanged: a view.")
      .def("t", transposed, "A matrix transposed, a vector itself: a view.")
      .def("sequential", sequential, nb::arg("ll"),
           nb::sig("def sequential(self, ll: collections.abc.Sequence[collections.abc.Callable["
                   "[Tensor], Tensor]]) -> Tensor"),
           R"(The functions, one after the other.

>>> Tensor([1, 2]).sequential([lambda x: x + 1, lambda x: x * 10]).tolist()
[20, 30]
)")
      .def(
          "replace",
          [](nb::handle self, const Tensor& x) {
            as_tensor(self)->replace(x);
            return nb::borrow(self);
          },
          nb::arg("x"), nb::sig("def replace(self, x: Tensor) -> Tensor"),
          R"(This handle becomes one on what x is; the memory that it had is not written.

>>> a, b = Tensor([1, 2]), Tensor([3, 4])
>>> view = a[:1]
>>> a.replace(b).tolist(), view.tolist(), a.shares_memory_with(b)
([3, 4], [1], True)
)")
      .def(
          "to",
          [](nb::handle self, const Device& device) {
            const Tensor& x = *as_tensor(self);
            if (!device || *device == x.device()) return nb::borrow(self);
            return nb::cast(x.to(*device));
          },
          nb::arg("device"), nb::sig("def to(self, device: str | None) -> Tensor"),
          R"(The same values on another device, copied when they are asked for; itself on this one.

>>> x = Tensor([1, 2], device="REF").to("CPU") * 2
>>> x.device, x.tolist()
('CPU', [2, 4])
)")
      .def(
          "to_",
          [](nb::handle self, const Device& device) {
            Tensor& x = *as_tensor(self);
            if (device) x = x.to(*device);
            return nb::borrow(self);
          },
          nb::arg("device"), nb::sig("def to_(self, device: str | None) -> Tensor"),
          "This handle becomes one on its values on another device.");
}

}  // namespace

void bind_tensor_shapes(TensorClass& c) {
  bind_formulas(c);
  bind_parts(c);
  bind_axes(c);
}

}  // namespace weft::python
