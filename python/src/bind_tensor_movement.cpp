// Tensor's views, and the methods that lay elements out anew.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
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

#include "convert.h"
#include "core.h"
#include "tensor.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

using List = std::vector<int64_t>;
using ListOfPairs = std::vector<std::pair<int64_t, int64_t>>;

bool is_sequence(nb::handle value) {
  return PyTuple_Check(value.ptr()) || PyList_Check(value.ptr());
}

std::pair<int64_t, int64_t> pair_of(nb::handle value, std::string_view what) {
  if (!is_sequence(value) || nb::len(value) != 2) {
    throw ShapeError(
        fmt::format("[{}] {} is no pair of ints", what, nb::cast<std::string>(nb::repr(value))));
  }
  return {int_of(value[0], what), int_of(value[1], what)};
}

nb::object list_of(nb::handle value, std::string_view what) {
  if (!is_sequence(value)) {
    type_error(fmt::format("[{}] a tuple is needed, not {}", what, type_text(value)));
  }
  return nb::borrow(value);
}

// A pair per axis; None keeps the axis.
Tensor shrink(const Tensor& x, nb::handle given) {
  ListOfPairs box;
  for (const nb::handle h : list_of(given, "shrink")) {
    const bool keeps = h.is_none() && box.size() < size_t(x.ndim());
    box.push_back(keeps ? std::pair(int64_t(0), x.shape()[box.size()]) : pair_of(h, "shrink"));
  }
  return x.shrink(box);
}

// A pair (or None) per axis; or, as in PyTorch, a flat list of two ints per axis, from the last on.
ListOfPairs padding_of(const Tensor& x, nb::handle given) {
  const nb::object list = list_of(given, "pad");
  ListOfPairs pairs;
  const bool is_flat = nb::len(list) != 0 && PyIndex_Check(nb::object(list[0]).ptr());
  if (!is_flat) {
    for (const nb::handle h : list) {
      pairs.push_back(h.is_none() ? std::pair(int64_t(0), int64_t(0)) : pair_of(h, "pad"));
    }
    return pairs;
  }
  const List flat = ints_of(list);
  if (flat.size() % 2 != 0 || flat.size() / 2 > size_t(x.ndim())) {
    throw ShapeError(fmt::format("[pad] {} numbers for {} axes: two for each, from the last on",
                                 flat.size(), x.ndim()));
  }
  pairs.resize(size_t(x.ndim()));
  for (size_t i = 0; i < flat.size(); i += 2) {
    pairs[pairs.size() - 1 - i / 2] = {flat[i], flat[i + 1]};
  }
  return pairs;
}

// 0.0 as 0 for integers, so that padding with it makes no floats of them.
Number in_kind_of(DType dtype, Number number) {
  const double value = std::visit([](auto n) { return double(n); }, number);
  if (dtype.is_bool() && (value == 0 || value == 1)) return value == 1;
  if (dtype.is_int() && value == std::floor(value) && std::abs(value) < 0x1p53) {
    return int64_t(value);
  }
  return number;
}

Tensor pad(const Tensor& x, nb::handle padding, std::string_view mode, nb::handle value) {
  const ListOfPairs pairs = padding_of(x, padding);
  if (mode == "reflect") return x.pad(pairs, Tensor::PadMode::kReflect);
  if (mode == "replicate") return x.pad(pairs, Tensor::PadMode::kReplicate);
  if (mode == "circular") return x.pad(pairs, Tensor::PadMode::kCircular);
  if (mode == "constant") return x.pad(pairs, in_kind_of(x.dtype(), number_of(value, "pad")));
  throw ShapeError(
      fmt::format("[pad] mode '{}'; there are constant, reflect, replicate, circular", mode));
}

Tensor reversed_axes(const Tensor& x) {
  List order(size_t(x.ndim()));
  std::iota(order.rbegin(), order.rend(), int64_t(0));
  return x.permute(order);
}

Tensor cat(nb::handle first, const nb::args& more, int64_t dim) {
  return Tensor::cat(tensors_of(first, more, "cat"), dim);
}

Tensor stack(nb::handle first, const nb::args& more, int64_t dim) {
  return Tensor::stack(tensors_of(first, more, "stack"), dim);
}

Tensor roll(const Tensor& x, nb::handle shifts, nb::handle dims) {
  return x.roll(*axes_of(shifts, "roll"), axes_of(dims, "roll"));
}

Tensor as_strided(const Tensor& x, nb::handle size, nb::handle stride, int64_t offset) {
  return x.as_strided(ints_of(list_of(size, "as_strided")), ints_of(list_of(stride, "as_strided")),
                      offset);
}

using ByInts = Tensor (Tensor::*)(Ints) const;

// x.name(2, 3) and x.name((2, 3))
void by_ints(TensorClass& c, const char* name, const char* argument, ByInts method,
             const char* doc) {
  const std::string text =
      fmt::format("def {}(self, {}: {}, *args: int) -> Tensor", name, argument, WEFT_SIZES);
  c.def(
      name,
      [name, method](const Tensor& x, nb::handle first, const nb::args& more) {
        return (x.*method)(ints_of(first, more, name));
      },
      nb::arg(argument), nb::arg("args"), nb::sig(text.c_str()), doc);
}

void bind_views(TensorClass& c) {
  by_ints(c, "reshape", "shape", &Tensor::reshape,
          R"(The same elements in row-major order under another shape; one size may be -1.

A view where the memory allows it, else a copy.

>>> a = Tensor.arange(6)
>>> b = a.reshape(2, -1)
>>> b[1, 0] = 30
>>> a.tolist()
[0, 1, 2, 30, 4, 5]
>>> a.reshape(4, 2)
Traceback (most recent call last):
weft.errors.ShapeError: [reshape] cannot view (6) as (4,2): 6 elements against 8
)");
  by_ints(c, "view", "shape", &Tensor::reshape, "reshape by PyTorch's name.");
  by_ints(c, "permute", "order", &Tensor::permute, "Axis i of the view is axis order[i].");
  by_ints(c, "flip", "axis", &Tensor::flip, R"(The axes in reverse: a view.

>>> Tensor([[1, 2], [3, 4]]).flip(0, 1).tolist()
[[4, 3], [2, 1]]
)");
  by_ints(c, "expand", "shape", &Tensor::expand,
          R"(Axes of size 1 repeated, new ones in front: a view, which can be filled but not written
element by element. -1 keeps a size.

>>> Tensor([[1], [2]]).expand(-1, 3).tolist()
[[1, 1, 1], [2, 2, 2]]
)");
  c.def("transpose", &Tensor::transpose, nb::arg("dim0") = 1, nb::arg("dim1") = 0,
        "Two axes exchanged: a view.")
      .def_prop_ro("T", reversed_axes, "The axes in reverse order: a view.")
      .def("shrink", shrink, nb::arg("arg"),
           nb::sig("def shrink(self, arg: collections.abc.Sequence[tuple[int, int] | None]) -> "
                   "Tensor"),
           R"(The box of [begin, end) on every axis, None for all of it: a view.

>>> Tensor([[1, 2, 3], [4, 5, 6]]).shrink((None, (1, 3))).tolist()
[[2, 3], [5, 6]]
)")
      .def("unfold", &Tensor::unfold, nb::arg("dim"), nb::arg("size"), nb::arg("step"),
           R"(Windows of `size` elements every `step` along an axis, as a last axis: a view.

>>> Tensor.arange(5).unfold(0, 3, 1).tolist()
[[0, 1, 2], [1, 2, 3], [2, 3, 4]]
)")
      .def("diagonal", &Tensor::diagonal, nb::arg("offset") = 0, nb::arg("dim1") = 0,
           nb::arg("dim2") = 1, R"(A diagonal of two axes, as the last axis: a view.

>>> a = Tensor.zeros(2, 2, dtype=dtypes.int32)
>>> d = a.diagonal()
>>> d += 1
>>> a.tolist()
[[1, 0], [0, 1]]
)")
      .def("as_strided", as_strided, nb::arg("size"), nb::arg("stride"),
           nb::arg("storage_offset") = 0,
           nb::sig("def as_strided(self, size: collections.abc.Sequence[int], stride: "
                   "collections.abc.Sequence[int], storage_offset: int = 0) -> Tensor"),
           R"(Any view of the memory of this tensor, whatever view of it this is.

>>> Tensor.arange(6).as_strided((2, 2), (3, 1), 1).tolist()
[[1, 2], [4, 5]]
)")
      .def("flatten", &Tensor::flatten, nb::arg("start_dim") = 0, nb::arg("end_dim") = -1,
           "Some axes as one; as reshape, a view where the memory allows it.")
      .def("squeeze", &Tensor::squeeze, nb::arg("dim") = nb::none(),
           nb::sig("def squeeze(self, dim: int | None = None) -> Tensor"),
           "Without axes of size 1, or without this one if its size is 1: a view.")
      .def("unsqueeze", &Tensor::unsqueeze, nb::arg("dim"), "A new axis of size 1: a view.")
      .def("detach", &Tensor::detach,
           R"(The same memory, seen without a gradient: by reads through it none passes.

>>> x = Tensor([3.0], requires_grad=True)
>>> (x * x.detach()).backward().gradient(x)[0].tolist()
[3.0]
)");
}

}  // namespace

void bind_tensor_movement(TensorClass& c) {
  bind_views(c);
  c.def(
       "pad", pad, nb::arg("padding"), nb::arg("mode") = "constant", nb::arg("value") = 0.0,
       nb::sig("def pad(self, padding: collections.abc.Sequence[tuple[int, int] | None] | "
               "collections.abc.Sequence[int], mode: str = 'constant', value: " WEFT_NUMBER
               " = 0.0) -> Tensor"),
       R"(More elements around: (before, after) for every axis, or two ints per axis from the last on.

They are `value`, or with another mode elements of the tensor: 'reflect' mirrors it at its outermost
elements, 'replicate' repeats these, 'circular' goes on at the other end.

>>> Tensor([1, 2]).pad(((1, 2),)).tolist(), Tensor([[1, 2]]).pad((0, 1), value=9).tolist()
([0, 1, 2, 0, 0], [[1, 2, 9]])
>>> [Tensor([1, 2, 3]).pad((2, 1), mode).tolist() for mode in ("reflect", "replicate", "circular")]
[[3, 2, 1, 2, 3, 2], [1, 1, 1, 2, 3, 3], [2, 3, 1, 2, 3, 1]]
)")
      .def("roll", roll, nb::arg("shifts"), nb::arg("dims") = nb::none(),
           nb::sig("def roll(self, shifts: " WEFT_SIZES ", dims: " WEFT_AXES " = None) -> Tensor"),
           R"(Elements moved on along the axes, the last ones to the front.

>>> Tensor([1, 2, 3]).roll(1).tolist()
[3, 1, 2]
)")
      .def("cat", cat, nb::arg("args"), nb::kw_only(), nb::arg("dim") = 0,
           nb::sig("def cat(self, *args: Tensor | collections.abc.Sequence[Tensor], dim: int = 0) "
                   "-> Tensor"),
           R"(This and others one after the other along an axis.

>>> Tensor([[1], [2]]).cat(Tensor([[3], [4]]), dim=1).tolist()
[[1, 3], [2, 4]]
)")
      .def("stack", stack, nb::arg("args"), nb::kw_only(), nb::arg("dim") = 0,
           nb::sig("def stack(self, *args: Tensor | collections.abc.Sequence[Tensor], dim: int = "
                   "0) -> Tensor"),
           R"(This and others along a new axis.

>>> Tensor.stack(Tensor([1, 2]), Tensor([3, 4]), dim=1).tolist()
[[1, 3], [2, 4]]
)")
      .def(
          "contiguous", [](const Tensor& x, const nb::kwargs&) { return x.contiguous(); },
          nb::arg("kwargs"), nb::sig("def contiguous(self, **kwargs: typing.Any) -> Tensor"),
          "The same values in row-major order; itself where they lie so already.")
      .def(
          "clone",
          [](const Tensor& x, const std::optional<std::string>& device) {
            return device ? x.to(*device).clone() : x.clone();
          },
          nb::arg("device") = nb::none(), "The same values in memory of its own.");
}

}  // namespace weft::python
