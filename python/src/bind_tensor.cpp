// The Python class Tensor: what a tensor is. Its other parts have a file each.
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "core.h"
#include "tensor.h"
#include "tensor/promote.h"
#include "value/number_watch.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::python {
namespace {

constexpr const char* kDoc =
    R"(An array of numbers on a device: lazy, and exactly as if it were not.

Operations build a program; it runs when values are asked for (realize, numpy, item, tolist,
printing). A view (a slice, reshape, T, ...) shares the memory of its tensor wherever PyTorch's would:
both see every write to either. A result of arithmetic keeps the values that it was made from.

>>> a = Tensor([[1, 2, 3], [4, 5, 6]])
>>> row = a[1]
>>> total = a.sum()
>>> row += 10
>>> a.tolist(), total.item()
([[1, 2, 3], [14, 15, 16]], 21)

`data` is a number, nested lists of numbers, a NumPy array or a Tensor, and is copied. Without a
dtype Python's numbers are bool, int32 or float32, and arrays keep theirs.

>>> Tensor([1, 2.5]).dtype, Tensor(3).shape, Tensor(numpy.zeros((2, 0))).dtype
(dtypes.float32, (), dtypes.float64)
)";

std::string device_of(const std::optional<std::string>& device) { return device.value_or(""); }

nb::object size_of(const Tensor& t, int64_t dim) {
  const int64_t rank = t.ndim();
  if (dim < -rank || dim >= rank) {
    throw IndexError(fmt::format("[size] axis {} of a tensor of {} axes", dim, rank));
  }
  return size_to_python(t.shape()[size_t(dim < 0 ? dim + rank : dim)]);
}

int64_t length(const Tensor& t) {
  if (t.ndim() == 0) type_error("[len] a tensor without axes has no length");
  assume_exact({t.shape()[0]});
  return t.shape()[0];
}

}  // namespace

TensorClass bind_tensor(nb::module_& m) {
  TensorClass c(m, "Tensor", nb::sig("class Tensor(_TensorCasts)"), kDoc,
                nb::type_slots(tensor_slots()));
  c.def(
       "__init__",
       [](Tensor* self, nb::handle data, nb::handle dtype, const std::optional<std::string>& device,
          std::optional<bool> requires_grad) {
         new (self) Tensor(made(tensor_of_data(data, optional_dtype_of(dtype), device_of(device)),
                                requires_grad));
       },
       nb::arg("data"), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
       nb::arg("requires_grad") = nb::none(),
       nb::sig("def __init__(self, data: typing.Any, dtype: " WEFT_DTYPE
               " = None, device: str | None = None, requires_grad: bool | None = None) -> None"))
      .def_prop_ro(
          "shape", [](const Tensor& t) { return sizes_to_python(t.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "The size of every axis.")
      .def_prop_ro("ndim", &Tensor::ndim, "The number of axes.")
      .def_prop_ro("dtype", &Tensor::dtype, "The type of its elements.")
      .def_prop_ro("device", &Tensor::device, "The name of the device that has its memory.")
      .def(
          "numel", [](const Tensor& t) { return size_to_python(t.numel()); },
          nb::sig("def numel(self) -> int"), "The number of elements.")
      .def("size", size_of, nb::arg("dim"), nb::sig("def size(self, dim: int) -> int"),
           "The size of one axis.")
      .def(
          "size", [](const Tensor& t, const nb::object&) { return sizes_to_python(t.shape()); },
          nb::arg("dim") = nb::none(),
          nb::sig("def size(self, dim: None = None) -> tuple[int, ...]"), "The shape.")
      .def(
          "element_size", [](const Tensor& t) { return t.dtype().item_bytes(); },
          "The bytes of one element.")
      .def(
          "nbytes",
          [](const Tensor& t) {
            return size_to_python(t.numel()) * nb::int_(t.dtype().item_bytes());
          },
          nb::sig("def nbytes(self) -> int"), "The bytes of all elements.")
      .def(
          "is_floating_point", [](const Tensor& t) { return t.dtype().is_float(); },
          "Whether its elements are floats.")
      .def(
          "is_contiguous",
          [](const Tensor& t) {
            assume_exact(t.view().shape);
            assume_exact(t.view().strides);
            return t.is_contiguous();
          },
          "Whether its elements lie in row-major order in its memory.")
      .def("is_realized", &Tensor::is_realized,
           "Whether its memory holds its values: reading them runs nothing.")
      .def("shares_memory_with", &Tensor::shares_memory_with, nb::arg("other"),
           R"(Whether both are views of one memory.

>>> a = Tensor.zeros(2, 3)
>>> a.shares_memory_with(a.T.flatten()), a.shares_memory_with(a[:, 1].reshape(2, 1))
(False, True)
)")
      .def("__len__", length)
      .def(
          "__hash__", [](nb::handle self) { return uint64_t(uintptr_t(self.ptr())) >> 4; },
          nb::sig("def __hash__(self) -> int"));
  c.attr("__array_ufunc__") = nb::none();  // NumPy leaves its operators to ours
  return c;
}

void bind_tensor_creation(TensorClass& c) {
  using Device = std::optional<std::string>;
  using Make = Tensor (*)(Ints, DType, std::string_view);
  const auto by_shape = [&c](const char* name, Make make, const char* doc) {
    const std::string text = fmt::format(
        "def {}(*shape: {}, device: str | None = None, dtype: {} = None, buffer: bool = True, "
        "requires_grad: bool | None = None) -> Tensor",
        name, WEFT_SIZES, WEFT_DTYPE);
    c.def_static(
        name,
        [name, make](const nb::args& shape, const Device& device, nb::handle dtype, bool,
                     std::optional<bool> requires_grad) {
          return made(make(shape_of(shape, name),
                           optional_dtype_of(dtype).value_or(default_float()), device_of(device)),
                      requires_grad);
        },
        nb::arg("shape"), nb::kw_only(), nb::arg("device") = nb::none(),
        nb::arg("dtype") = nb::none(), nb::arg("buffer") = true,
        nb::arg("requires_grad") = nb::none(), nb::sig(text.c_str()), doc);
  };
  by_shape("empty", Tensor::empty, "Memory that nobody wrote yet.");
  by_shape("zeros", Tensor::zeros,
           R"(All elements 0. `buffer` changes nothing: any tensor can be written.

>>> Tensor.zeros(2, 3).shape, Tensor.zeros((2,), dtype=dtypes.int8).tolist()
((2, 3), [0, 0])
)");
  by_shape("ones", Tensor::ones, "All elements 1.");

  c.def_static(
       "full",
       [](nb::handle shape, nb::handle value, nb::handle dtype, const Device& device, bool,
          std::optional<bool> requires_grad) {
         return made(Tensor::full(*axes_of(shape, "full"), number_of(value, "full"),
                                  optional_dtype_of(dtype), device_of(device)),
                     requires_grad);
       },
       nb::arg("shape"), nb::arg("fill_value"), nb::arg("dtype") = nb::none(),
       nb::arg("device") = nb::none(), nb::arg("buffer") = true,
       nb::arg("requires_grad") = nb::none(),
       nb::sig("def full(shape: " WEFT_SIZES ", fill_value: " WEFT_NUMBER ", dtype: " WEFT_DTYPE
               " = None, device: str | None = None, buffer: bool = True, requires_grad: "
               "bool | None = None) -> Tensor"),
       R"(All elements the same number. `buffer` changes nothing: any tensor can be written.

>>> Tensor.full((2, 2), 7).tolist()
[[7, 7], [7, 7]]
)")
      .def_static(
          "arange",
          [](nb::handle start, nb::handle stop, nb::handle step, nb::handle dtype,
             const Device& device, std::optional<bool> requires_grad) {
            const auto number = [](nb::handle h) { return number_of(h, "arange"); };
            const bool from_zero = stop.is_none();
            return made(Tensor::arange(from_zero ? Number(int64_t(0)) : number(start),
                                       number(from_zero ? start : stop), number(step),
                                       optional_dtype_of(dtype), device_of(device)),
                        requires_grad);
          },
          nb::arg("start"), nb::arg("stop") = nb::none(), nb::arg("step") = 1,
          nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
          nb::arg("requires_grad") = nb::none(),
          nb::sig("def arange(start: " WEFT_NUMBER ", stop: " WEFT_NUMBER
                  " | None = None, step: " WEFT_NUMBER " = 1, dtype: " WEFT_DTYPE
                  " = None, device: str | None = None, requires_grad: bool | None = None) -> "
                  "Tensor"),
          R"(start, start + step, ... before stop; from 0 where only one number is given.

>>> Tensor.arange(4).tolist(), Tensor.arange(1, 0, -0.5).tolist()
([0, 1, 2, 3], [1.0, 0.5])
)");

  const auto like = [&c](const char* name, auto make, const char* doc) {
    const std::string text = fmt::format(
        "def {}(self, dtype: {} = None, device: str | None = None, requires_grad: bool | None = "
        "None) -> Tensor",
        name, WEFT_DTYPE);
    c.def(
        name,
        [make](const Tensor& t, nb::handle dtype, const Device& device,
               std::optional<bool> requires_grad) {
          return made(make(t.shape(), optional_dtype_of(dtype).value_or(t.dtype()),
                           device ? *device : t.device()),
                      requires_grad);
        },
        nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
        nb::arg("requires_grad") = nb::none(), nb::sig(text.c_str()), doc);
  };
  like("empty_like", Make(Tensor::empty), "Memory of this shape and dtype that nobody wrote yet.");
  like("zeros_like", Make(Tensor::zeros), "Zeros of this shape and dtype.");
  like("ones_like", Make(Tensor::ones), R"(Ones of this shape and dtype.

>>> Tensor([1.5, 2.5]).ones_like(dtype=dtypes.int32).tolist()
[1, 1]
)");
  c.def(
      "full_like",
      [](const Tensor& t, nb::handle value, nb::handle dtype, const Device& device, bool,
         std::optional<bool> requires_grad) {
        return made(Tensor::full(t.shape(), number_of(value, "full_like"),
                                 optional_dtype_of(dtype).value_or(t.dtype()),
                                 device ? *device : t.device()),
                    requires_grad);
      },
      nb::arg("fill_value"), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("buffer") = true, nb::arg("requires_grad") = nb::none(),
      nb::sig("def full_like(self, fill_value: " WEFT_NUMBER ", dtype: " WEFT_DTYPE
              " = None, device: str | None = None, buffer: bool = True, requires_grad: bool | "
              "None = None) -> Tensor"),
      "One number in this shape and dtype.");
}

}  // namespace weft::python
