// Operands, sizes and dtypes of Tensor's methods.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "convert.h"
#include "core.h"
#include "tensor.h"
#include "value/number_watch.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::python {
namespace {

PyTypeObject* tensor_type() {
  static PyTypeObject* const kType = reinterpret_cast<PyTypeObject*>(nb::type<Tensor>().ptr());
  return kType;
}

bool is_sequence(nb::handle value) {
  return PyTuple_Check(value.ptr()) || PyList_Check(value.ptr());
}

// Of a Python int; past 64 bits, an Error that names `what`.
template <class Error>
int64_t int64_of(nb::handle value, std::string_view what) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (overflow != 0) {
    throw Error(fmt::format("[{}] {} does not fit into 64 bits", what,
                            nb::cast<std::string>(nb::str(value))));
  }
  return number;
}

std::vector<int64_t> list_of_ints(nb::handle sequence, std::string_view what) {
  std::vector<int64_t> out;
  for (const nb::handle h : sequence) out.push_back(int_of(h, what));
  return out;
}

}  // namespace

// ---------------------------------------------------------------------------------------- operands

Tensor* as_tensor(nb::handle value) {
  if (Py_TYPE(value.ptr()) != tensor_type() && !nb::isinstance<Tensor>(value)) return nullptr;
  if (!nb::inst_ready(value)) type_error("a Tensor that __init__ did not see");
  return nb::inst_ptr<Tensor>(value);
}

std::optional<Number> as_number(nb::handle value) {
  PyObject* const p = value.ptr();
  if (PyFloat_Check(p)) return Number(PyFloat_AS_DOUBLE(p));
  if (PyBool_Check(p)) return Number(p == Py_True);
  if (PyLong_Check(p)) return Number(int64_of<DTypeError>(value, "number"));
  if (const nb::object watched = number_of_watched(value); watched.is_valid()) {
    return as_number(watched);
  }
  const std::string_view name = type_text(value);
  if (!name.starts_with("numpy.") || name == "numpy.ndarray") return {};
  if (name == "numpy.bool" || name == "numpy.bool_") return Number(PyObject_IsTrue(p) == 1);
  if (PyIndex_Check(p)) return Number(int64_of<DTypeError>(nb::steal(PyNumber_Index(p)), "number"));
  const PyNumberMethods* const methods = Py_TYPE(p)->tp_as_number;
  if (methods == nullptr || methods->nb_float == nullptr) return {};
  const nb::object number = nb::steal(PyNumber_Float(p));
  if (!number.is_valid()) throw nb::python_error();
  return Number(PyFloat_AS_DOUBLE(number.ptr()));
}

Number number_of(nb::handle value, std::string_view what) {
  const std::optional<Number> number = as_number(value);
  if (!number) type_error(fmt::format("[{}] a number is needed, not {}", what, type_text(value)));
  return *number;
}

std::optional<Tensor> as_array(nb::handle value, std::string_view device) {
  if (type_text(value) != "numpy.ndarray") return {};
  return tensor_of_data(value, {}, device);
}

void no_operand(std::string_view what, nb::handle value) {
  type_error(fmt::format("[{}] an operand is a Tensor, a number or a NumPy array, not {}", what,
                         type_text(value)));
}

// ------------------------------------------------------------------------------------------- sizes

int64_t int_of(nb::handle value, std::string_view what) {
  PyObject* const p = value.ptr();
  if (PyLong_CheckExact(p)) return int64_of<ShapeError>(value, what);
  if (const nb::object watched = number_of_watched(value); watched.is_valid()) {
    return int64_of<ShapeError>(watched, what);
  }
  if (!PyIndex_Check(p) || as_tensor(value) != nullptr) {
    type_error(fmt::format("[{}] an int is needed, not {}", what, type_text(value)));
  }
  const nb::object number = nb::steal(PyNumber_Index(p));
  if (!number.is_valid()) throw nb::python_error();
  return int64_of<ShapeError>(number, what);
}

std::vector<int64_t> ints_of(nb::handle first, const nb::args& more, std::string_view what) {
  if (is_sequence(first)) {
    if (more.size() != 0) type_error(fmt::format("[{}] a tuple, or ints, not both", what));
    return list_of_ints(first, what);
  }
  std::vector<int64_t> out = {int_of(first, what)};
  for (const nb::handle h : more) out.push_back(int_of(h, what));
  return out;
}

std::vector<int64_t> shape_of(const nb::args& sizes, std::string_view what) {
  return list_of_ints(spread(sizes), what);
}

Axes axes_of(nb::handle value, std::string_view what) {
  if (value.is_none()) return {};
  if (is_sequence(value)) return list_of_ints(value, what);
  return std::vector<int64_t>{int_of(value, what)};
}

nb::tuple tuple_of_ints(Ints list) {
  nb::object out = nb::steal(PyTuple_New(Py_ssize_t(list.size())));
  if (!out.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < list.size(); i++) {
    PyTuple_SET_ITEM(out.ptr(), Py_ssize_t(i), PyLong_FromLongLong(list[i]));
  }
  return nb::borrow<nb::tuple>(out);
}

// ------------------------------------------------------------------------------- ints that watch

namespace {

PyTypeObject*& watched_int() {
  static PyTypeObject* kind = nullptr;
  return kind;
}

}  // namespace

void set_watched_int(nb::handle kind) {
  if (!PyType_Check(kind.ptr())) type_error("[set_watched_int] a class is needed");
  watched_int() = reinterpret_cast<PyTypeObject*>(kind.inc_ref().ptr());
}

nb::object number_of_watched(nb::handle value) {
  PyTypeObject* const kind = watched_int();
  if (kind == nullptr || PyType_IsSubtype(Py_TYPE(value.ptr()), kind) == 0) return {};
  return value.attr("number");
}

nb::object size_to_python(int64_t size) {
  if (number_watch() == nullptr || watched_int() == nullptr) return nb::int_(size);
  return nb::borrow(reinterpret_cast<PyObject*>(watched_int()))(size);
}

nb::tuple sizes_to_python(Ints sizes) {
  if (number_watch() == nullptr) return tuple_of_ints(sizes);
  nb::list list;
  for (const int64_t size : sizes) list.append(size_to_python(size));
  return nb::tuple(list);
}

nb::tuple tuple_of_tensors(std::span<const Tensor> tensors) {
  nb::list list;
  for (const Tensor& t : tensors) list.append(nb::cast(t));
  return nb::tuple(list);
}

namespace {

void append_tensors(std::vector<Tensor>& tensors, nb::handle list, std::string_view what) {
  for (const nb::handle h : list) {
    const Tensor* t = as_tensor(h);
    if (t == nullptr) {
      type_error(fmt::format("[{}] a Tensor is needed, not {}", what, type_text(h)));
    }
    tensors.push_back(*t);
  }
}

}  // namespace

std::vector<Tensor> tensors_of(const nb::args& args, std::string_view what) {
  std::vector<Tensor> tensors;
  append_tensors(tensors, spread(args), what);
  return tensors;
}

std::vector<Tensor> tensors_of(nb::handle first, const nb::args& more, std::string_view what) {
  std::vector<Tensor> tensors;
  append_tensors(tensors, is_sequence(first) ? nb::borrow(first) : nb::make_tuple(first), what);
  append_tensors(tensors, spread(more), what);
  return tensors;
}

// ------------------------------------------------------------------------------------------ dtypes

namespace {

// Of weft.dtypes' names, in letters of either case.
std::optional<DType> dtype_named(std::string name) {
  static constexpr std::pair<std::string_view, DType> kOthers[] = {
      {"half", dtypes::float16},       {"float", dtypes::float32}, {"double", dtypes::float64},
      {"char", dtypes::int8},          {"short", dtypes::int16},   {"int", dtypes::int32},
      {"long", dtypes::int64},         {"uchar", dtypes::uint8},   {"ushort", dtypes::uint16},
      {"uint", dtypes::uint32},        {"ulong", dtypes::uint64},  {"fp8e4m3", dtypes::float8_e4m3},
      {"fp8e5m2", dtypes::float8_e5m2}};
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  for (const auto& [other, dtype] : kOthers) {
    if (name == other) return dtype;
  }
  return parse_dtype(name);
}

}  // namespace

DType dtype_of(nb::handle value) {
  std::optional<DType> dtype;
  if (nb::isinstance<DType>(value)) {
    dtype = *nb::inst_ptr<DType>(value);
  } else if (PyUnicode_Check(value.ptr())) {
    dtype = dtype_named(nb::cast<std::string>(value));
    if (!dtype) {
      throw DTypeError(
          fmt::format("[dtype] there is no dtype {}", nb::cast<std::string>(nb::str(value))));
    }
  } else {
    type_error(fmt::format("[dtype] a DType or its name is needed, not {}", type_text(value)));
  }
  if (dtype->is_void() || dtype->is_index() || dtype->is_pointer() || dtype->is_vector()) {
    throw DTypeError(fmt::format("[dtype] no tensor has elements of {}", dtype->name()));
  }
  return *dtype;
}

std::optional<DType> optional_dtype_of(nb::handle value) {
  if (value.is_none()) return {};
  return dtype_of(value);
}

}  // namespace weft::python
