// DType.
#include <cmath>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "base/error.h"
#include "convert.h"
#include "core.h"
#include "ir/dtype.h"
#include "ir/scalar.h"
#include "tensor.h"
#include "tensor/promote.h"

namespace weft::python {
namespace {

DType dtype_of_text(std::string_view name) {
  const std::optional<DType> found = parse_dtype(name);
  if (!found) throw DTypeError(fmt::format("[dtype] there is no dtype {}", name));
  return *found;
}

std::string repr(DType t) {
  if (t.is_pointer()) {
    return fmt::format("{}.ptr(AddrSpace.{})", repr(t.pointee()), upper(name_of(t.space)));
  }
  if (t.is_vector()) return fmt::format("dtypes.{}.vec({})", t.element().name(), t.lanes);
  return "dtypes." + t.name();
}

DType vec(DType t, int64_t lanes) {
  if (lanes < 1 || lanes > UINT16_MAX) {
    throw DTypeError(fmt::format("[vec] a vector has 1 to 65535 lanes, not {}", lanes));
  }
  return t.vec(uint16_t(lanes));
}

// Of floats an infinity.
nb::object extreme(DType t, uint64_t (*bits)(DType), double end) {
  if (!t.is_pointer() && t.is_float()) return nb::float_(end);
  if (t.is_pointer() || !(t.is_int() || t.is_bool())) {
    throw DTypeError(fmt::format("[dtype] {} has no numbers", t.name()));
  }
  return number_of_bits(t, bits(t));
}

}  // namespace

void bind_default_dtypes(nb::module_& m) {
  m.def("default_float", default_float, "dtypes.default_float.");
  m.def("default_int", default_int, "dtypes.default_int.");
  m.def(
      "set_default_float", [](nb::handle dtype) { set_default_float(dtype_of(dtype)); },
      nb::arg("dtype"), nb::sig("def set_default_float(dtype: DType | str) -> None"),
      "Sets dtypes.default_float.");
  m.def(
      "set_default_int", [](nb::handle dtype) { set_default_int(dtype_of(dtype)); },
      nb::arg("dtype"), nb::sig("def set_default_int(dtype: DType | str) -> None"),
      "Sets dtypes.default_int.");
}

void bind_dtype(nb::module_& m) {
  nb::class_<DType>(m, "DType",
                    R"(The type of a node: a scalar, a vector of scalars, or a pointer to them.

>>> dtypes.float32.vec(4)
dtypes.float32.vec(4)
>>> DType("ptr<int8, local>") == dtypes.int8.ptr(AddrSpace.LOCAL)
True
>>> dtypes.uint8.max, dtypes.int16.bits, dtypes.bool.is_int
(255, 16, False)
)")
      .def(
          "__init__",
          [](DType* self, std::string_view name) { new (self) DType(dtype_of_text(name)); },
          nb::arg("name"), "The dtype of this name: float32, int8x4, ptr<float32, global>.")
      .def_prop_ro("name", &DType::name, "As text forms write it, and DType(name) reads it.")
      .def_prop_ro(
          "lanes", [](DType t) { return t.lanes; }, "1 unless it is a vector.")
      .def_prop_ro(
          "space", [](DType t) { return t.space; },
          "Where a pointer points to; AddrSpace.NONE for values.")
      .def_prop_ro("bits", &DType::bits, "The width of one lane.")
      .def_prop_ro("bitsize", &DType::bits, "The same as bits.")
      .def_prop_ro("itemsize", &DType::item_bytes, "The bytes of one lane in memory.")
      .def_prop_ro("element", &DType::element, "One lane, no pointer.")
      .def_prop_ro("pointee", &DType::pointee, "What a pointer points to.")
      .def_prop_ro("is_void", &DType::is_void)
      .def_prop_ro("is_bool", &DType::is_bool)
      .def_prop_ro("is_index", &DType::is_index)
      .def_prop_ro("is_int", &DType::is_int, "Signed, unsigned or index; bool is none.")
      .def_prop_ro("is_signed", &DType::is_signed)
      .def_prop_ro("is_unsigned", &DType::is_unsigned)
      .def_prop_ro("is_float", &DType::is_float)
      .def_prop_ro("is_pointer", &DType::is_pointer)
      .def_prop_ro("is_vector", &DType::is_vector)
      .def_prop_ro(
          "min", [](DType t) { return extreme(t, least_bits, double(-INFINITY)); },
          nb::sig("def min(self) -> int | float"), "The least number of the type.")
      .def_prop_ro(
          "max", [](DType t) { return extreme(t, greatest_bits, double(INFINITY)); },
          nb::sig("def max(self) -> int | float"), "The greatest number of the type.")
      .def("vec", vec, nb::arg("lanes"), "A vector of these.")
      .def("ptr", &DType::ptr, nb::arg("space") = AddrSpace::kGlobal, "A pointer to these.")
      .def(
          "__eq__", [](DType a, DType b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def(
          "__ne__", [](DType a, DType b) { return !(a == b); }, nb::is_operator(),
          nb::sig("def __ne__(self, other: object, /) -> bool"))
      .def(
          "__hash__", [](DType t) { return t.packed(); }, nb::sig("def __hash__(self) -> int"))
      .def("__repr__", repr)
      .def("__str__", &DType::name)
      .def(
          "__reduce__",
          [](DType t) { return nb::make_tuple(nb::type<DType>(), nb::make_tuple(t.name())); },
          nb::sig("def __reduce__(self) -> tuple[type[DType], tuple[str]]"));
}

}  // namespace weft::python
