// UOps without operands: constants, variables, definitions; and sinks.
#include <cstdint>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>

#include "base/error.h"
#include "convert.h"
#include "core.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"

namespace weft::python {
namespace {

Graph constant_of(DType dtype, nb::handle value) {
  const uint64_t bits = bits_of_number(dtype, value);
  const std::shared_ptr<Arena> arena = current_arena();
  return {arena, constant_bits(*arena, dtype, bits)};
}

Graph constant_of_bits(DType dtype, uint64_t bits) {
  const int width = dtype.bits();
  if (width < 64 && bits >> width != 0) {
    throw DTypeError(fmt::format("[const] {:#x} has more bits than {}", bits, dtype.name()));
  }
  const std::shared_ptr<Arena> arena = current_arena();
  return {arena, constant_bits(*arena, dtype, dtype.is_float() ? bits : bits_of_uint(dtype, bits))};
}

Graph variable_of(std::string_view name, int64_t lo, int64_t hi, DType dtype) {
  const std::shared_ptr<Arena> arena = current_arena();
  return {arena, variable(*arena, name, lo, hi, dtype)};
}

Graph range_of(nb::handle size, int64_t id, AxisType axis) {
  const std::shared_ptr<Arena> arena = arena_of(size);
  return {arena, range(*arena, dim_of(*arena, size), checked_range_id(id), axis)};
}

Graph special_of(std::string_view name, nb::handle size) {
  const std::shared_ptr<Arena> arena = arena_of(size);
  return {arena, special(*arena, name, dim_of(*arena, size))};
}

Graph buffer_of(DType dtype, nb::handle size, std::string_view device_name, int64_t id) {
  const std::shared_ptr<Arena> arena = arena_of(size);
  return {arena, buffer(*arena, dtype, dim_of(*arena, size), device_name, id)};
}

Graph global_of(DType dtype, nb::handle size, int64_t id) {
  const std::shared_ptr<Arena> arena = arena_of(size);
  if (size.is_none()) return {arena, define_global(*arena, dtype, id)};
  return {arena, define_global(*arena, dtype, dim_of(*arena, size), id)};
}

Graph local_of(DType dtype, nb::handle size, int64_t id) {
  const std::shared_ptr<Arena> arena = arena_of(size);
  return {arena, define_local(*arena, dtype, dim_of(*arena, size), id)};
}

Graph sink_of(const nb::args& srcs) {
  const std::shared_ptr<Arena> arena = arena_of(srcs);
  return {arena, sink(*arena, nodes_of(*arena, srcs, "a source of a SINK"))};
}

}  // namespace

void bind_definitions(UOpClass& c) {
  c.def_static("const", constant_of, nb::arg("dtype"), nb::arg("value"),
               nb::sig("def const(dtype: DType, value: int | float) -> UOp"),
               R"(A constant, exact in its dtype; of a vector, the same in every lane.

>>> UOp.const(dtypes.int8, 300)
Traceback (most recent call last):
weft.errors.DTypeError: [const] 300 is not a value of int8
)")
      .def_static("const_bits", constant_of_bits, nb::arg("dtype"), nb::arg("bits"),
                  "The constant with these bits: a NaN with its payload.")
      .def_static("variable", variable_of, nb::arg("name"), nb::arg("lo"), nb::arg("hi"),
                  nb::arg("dtype") = dtypes::index,
                  "An integer that each call binds, from lo to hi, both included.")
      .def_static("range", range_of, nb::arg("size"), nb::arg("id"),
                  nb::arg("axis") = AxisType::kLoop,
                  nb::sig("def range(size: int | UOp, id: int, axis: AxisType = ...) -> UOp"),
                  "A loop index from 0 to size - 1. Equal ids make one loop.")
      .def_static("special", special_of, nb::arg("name"), nb::arg("size"),
                  nb::sig("def special(name: str, size: int | UOp) -> UOp"),
                  "An index that the hardware provides: gidx0, lidx1.")
      .def_static(
          "device",
          [](std::string_view name) {
            const std::shared_ptr<Arena> arena = current_arena();
            return Graph{arena, device(*arena, name)};
          },
          nb::arg("name"), "A device, by name.")
      .def_static("buffer", buffer_of, nb::arg("dtype"), nb::arg("size"), nb::arg("device"),
                  nb::arg("id"),
                  nb::sig("def buffer(dtype: DType, size: int | UOp, device: str, id: int) -> UOp"),
                  "Memory of a device: a tensor of one dimension.")
      .def_static(
          "define_global", global_of, nb::arg("dtype"), nb::arg("size").none(), nb::arg("id"),
          nb::sig("def define_global(dtype: DType, size: int | UOp | None, id: int) -> UOp"),
          R"(A kernel argument: a pointer to so many elements, or, with None, one element.

>>> UOp.define_global(dtypes.float32, 1, 0).index(0).assign(2.0).dtype
dtypes.void
>>> UOp.define_global(dtypes.float32, None, 0).assign(2.0).dtype
dtypes.float32
)")
      .def_static("define_local", local_of, nb::arg("dtype"), nb::arg("size"), nb::arg("id"),
                  nb::sig("def define_local(dtype: DType, size: int | UOp, id: int) -> UOp"),
                  "Memory that a workgroup shares.")
      .def_static(
          "define_reg",
          [](DType dtype, int64_t id) {
            const std::shared_ptr<Arena> arena = current_arena();
            return Graph{arena, define_reg(*arena, dtype, id)};
          },
          nb::arg("dtype"), nb::arg("id"), "A register: an accumulator.")
      .def_static("sink", sink_of, nb::sig("def sink(*srcs: UOp) -> UOp"),
                  "All of these: the root of a graph.");
}

}  // namespace weft::python
