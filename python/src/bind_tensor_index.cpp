// Reading and writing parts of a tensor: t[...], t[...] = value, assign.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include "core.h"
#include "interpreter.h"
#include "tensor.h"
#include "value/number_watch.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

constexpr int64_t kFarthest = int64_t(1) << 62;

[[noreturn]] void no_index(nb::handle value) {
  throw IndexError(fmt::format(
      "[index] an index is an int, a slice, None, ..., a Tensor, a NumPy array or a list "
      "of ints or bools; {} is none of them",
      type_text(value)));
}

bool is_int(nb::handle value) {
  return PyIndex_Check(value.ptr()) && !PyBool_Check(value.ptr()) && as_tensor(value) == nullptr &&
         type_text(value) != std::string_view("numpy.ndarray");
}

// An int of any size: past 64 bits it is as far out of range as the nearest that fits.
int64_t position_of(nb::handle value) {
  if (!is_int(value)) no_index(value);
  nb::object number = number_of_watched(value);
  if (!number.is_valid()) number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long position = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) return overflow > 0 ? kFarthest : -kFarthest;
  return position;
}

std::optional<int64_t> bound_of(nb::handle value) {
  if (value.is_none()) return {};
  if (!is_int(value)) {
    throw DTypeError(
        fmt::format("[index] the bounds of a slice are ints or None, not {}", type_text(value)));
  }
  return position_of(value);
}

// A list, a range, an array, or another sequence but text. A tuple is one inside of a key.
bool is_list(nb::handle value) {
  PyObject* const p = value.ptr();
  if (PyList_Check(p) || type_text(value) == std::string_view("numpy.ndarray")) return true;
  const bool is_text = PyUnicode_Check(p) || PyBytes_Check(p) || PyByteArray_Check(p);
  return PySequence_Check(p) && !is_text && !PyTuple_Check(p) && !PyIndex_Check(p) &&
         as_tensor(value) == nullptr;
}

bool is_nested(nb::handle value) { return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()); }

bool has_tensor(nb::handle list) {
  for (const nb::handle h : list) {
    if (as_tensor(h) != nullptr || (is_nested(h) && has_tensor(h))) return true;
  }
  return false;
}

// Of nested lists with tensors among the numbers.
Tensor stacked(const Tensor& x, nb::handle value) {
  if (const Tensor* t = as_tensor(value)) return *t;
  if (!is_nested(value) || !has_tensor(value)) return tensor_of_data(value, {}, x.device());
  std::vector<Tensor> parts;
  for (const nb::handle h : value) parts.push_back(stacked(x, h));
  return Tensor::stack(parts, 0);
}

// A list or an array: an empty list names nothing.
Tensor tensor_index(const Tensor& x, nb::handle value) {
  const bool is_array = type_text(value) == std::string_view("numpy.ndarray");
  if (!is_nested(value) && !is_array) {
    const nb::object list = nb::steal(PySequence_List(value.ptr()));
    if (!list.is_valid()) throw nb::python_error();
    return tensor_index(x, list);
  }
  Tensor t = stacked(x, value);
  return is_nested(value) && t.numel() == 0 ? t.cast(dtypes::int32) : t;
}

Index index_of(const Tensor& x, nb::handle value) {
  PyObject* const p = value.ptr();
  if (const Tensor* t = as_tensor(value)) return ByTensor(*t);
  if (is_list(value) || PyTuple_Check(p)) return ByTensor(tensor_index(x, value));
  if (PyBool_Check(p)) return ByTensor(Tensor::full({}, p == Py_True, dtypes::bool_, x.device()));
  if (PySlice_Check(p)) {
    const auto* const slice = reinterpret_cast<const PySliceObject*>(p);
    const int64_t step = bound_of(slice->step).value_or(1);
    return Slice{bound_of(slice->start), bound_of(slice->stop), step};
  }
  if (value.is_none()) return NewAxis{};
  if (p == Py_Ellipsis) return Ellipsis{};
  return position_of(value);
}

std::vector<Index> indices_of(const Tensor& x, nb::handle key) {
  std::vector<Index> indices;
  if (!PyTuple_Check(key.ptr())) {
    indices.push_back(index_of(x, key));
    return indices;
  }
  indices.reserve(size_t(PyTuple_GET_SIZE(key.ptr())));
  for (const nb::handle h : nb::borrow<nb::tuple>(key)) indices.push_back(index_of(x, h));
  return indices;
}

Tensor part_of(const Tensor& x, nb::handle key) {
  if (!PyTuple_Check(key.ptr()) && as_tensor(key) == nullptr && !is_list(key)) {
    const Index index = index_of(x, key);
    return x.at(Indices(&index, 1));
  }
  // A handle of its own: other threads may change x meanwhile, and the result is a view of it.
  const Tensor mine = x;  // NOLINT(performance-unnecessary-copy-initialization)
  const std::vector<Index> indices = indices_of(x, key);
  const InterpreterReleased release;  // masks are computed
  return mine.at(indices);
}

bool has_tensors(const std::vector<Index>& indices) {
  return std::ranges::any_of(indices,
                             [](const Index& i) { return std::holds_alternative<ByTensor>(i); });
}

// Anything that Tensor(...) takes.
void write(Tensor& target, nb::handle value) {
  if (const Tensor* source = as_tensor(value)) {
    // `t[i] += 1` hands the part that it wrote back to t[i].
    const bool is_itself = source->shares_memory_with(target) && source->view() == target.view();
    if (!is_itself) target.assign(*source);
  } else if (const std::optional<Number> number = as_number(value)) {
    target.assign(*number);
  } else {
    target.assign(tensor_of_data(value, target.dtype(), target.device()));
  }
}

nb::object iterate(const Tensor& x) {
  if (x.ndim() == 0) type_error("[iter] a tensor without axes cannot be iterated over");
  assume_exact({x.shape()[0]});
  nb::list parts;
  for (int64_t i = 0; i < x.shape()[0]; i++) parts.append(x.at({i}));
  return nb::iter(parts);
}

}  // namespace

void bind_tensor_index(TensorClass& c) {
  c.def("__getitem__", part_of, nb::arg("key").none(),
        nb::sig("def __getitem__(self, key: " WEFT_KEY ", /) -> Tensor"))
      .def(
          "__setitem__",
          [](const Tensor& x, nb::handle key, nb::handle value) {
            const std::vector<Index> indices = indices_of(x, key);
            if (!has_tensors(indices)) {
              Tensor part = x.at(indices);
              return write(part, value);
            }
            Tensor target = x;
            if (const Tensor* source = as_tensor(value)) {
              target.set(indices, *source);
            } else if (const std::optional<Number> number = as_number(value)) {
              target.set(indices, *number);
            } else {
              target.set(indices, tensor_of_data(value, x.dtype(), x.device()));
            }
          },
          nb::arg("key").none(), nb::arg("value").none(),
          nb::sig("def __setitem__(self, key: " WEFT_KEY ", value: typing.Any, /) -> None"))
      .def("__iter__", iterate, nb::sig("def __iter__(self) -> collections.abc.Iterator[Tensor]"))
      .def(
          "assign",
          [](nb::handle self, nb::handle value) {
            write(*as_tensor(self), value);
            return nb::borrow(self);
          },
          nb::arg("x"), nb::sig("def assign(self, x: typing.Any) -> Tensor"),
          R"(Writes x, broadcast and cast, into the memory of this tensor, and returns this.

>>> a = Tensor.zeros(2, 3, dtype=dtypes.int32)
>>> _ = a.T.assign(Tensor([[1, 2], [3, 4], [5, 6]]))
>>> a.tolist()
[[1, 3, 5], [2, 4, 6]]
)");
}

}  // namespace weft::python
