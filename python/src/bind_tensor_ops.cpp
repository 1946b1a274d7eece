// The ops of tensor graphs: movement, reductions, copies.
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include "convert.h"
#include "core.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft::python {
namespace {

using Pairs = std::vector<std::pair<Dim, Dim>>;

template <UOp (*make)(UOp, Shape)>
Graph by_sizes(const Graph& g, const nb::args& sizes) {
  return {g.arena, make(g.root, dims_of(*g.arena, spread(sizes)))};
}

template <UOp (*make)(UOp, std::span<const int64_t>)>
Graph by_axes(const Graph& g, const nb::args& axes) {
  return {g.arena, make(g.root, ints_of(spread(axes)))};
}

template <UOp (*make)(UOp, std::span<const std::pair<Dim, Dim>>)>
Graph by_pairs(const Graph& g, nb::handle pairs) {
  return {g.arena, make(g.root, dim_pairs_of(*g.arena, pairs))};
}

Graph view(const Graph& g, nb::handle sizes, nb::handle strides, nb::handle offset) {
  return {g.arena, strided_view(g.root, dims_of(*g.arena, sizes), dims_of(*g.arena, strides),
                                dim_of(*g.arena, offset))};
}

}  // namespace

void bind_tensor_ops(UOpClass& c) {
  c.def(
       "reshape", by_sizes<reshape>,
       nb::sig("def reshape(self, *sizes: int | UOp | collections.abc.Sequence[int | UOp]) -> UOp"),
       R"(The same elements in row-major order under another shape.

>>> UOp.buffer(dtypes.int8, 6, "CPU", 0).reshape(4, 2)
Traceback (most recent call last):
weft.errors.ShapeError: [reshape] cannot view (6) as (4,2): 6 elements against 8
)")
      .def("permute", by_axes<permute>,
           nb::sig("def permute(self, *order: int | collections.abc.Sequence[int]) -> UOp"),
           "Axis i of the result is axis order[i].")
      .def("expand", by_sizes<expand>,
           nb::sig("def expand(self, *sizes: int | UOp | collections.abc.Sequence[int | UOp]) "
                   "-> UOp"),
           "Axes of size 1 repeated.")
      .def("pad", by_pairs<pad>, nb::arg("before_after"),
           nb::sig("def pad(self, before_after: "
                   "collections.abc.Sequence[tuple[int | UOp, int | UOp]]) -> UOp"),
           "Zeros around it: a pair (before, after) for every axis.")
      .def("shrink", by_pairs<shrink>, nb::arg("begin_end"),
           nb::sig("def shrink(self, begin_end: "
                   "collections.abc.Sequence[tuple[int | UOp, int | UOp]]) -> UOp"),
           "The box from begin to end - 1: a pair (begin, end) for every axis.")
      .def("flip", by_axes<flip>,
           nb::sig("def flip(self, *axes: int | collections.abc.Sequence[int]) -> UOp"),
           "These axes reversed.")
      .def("view", view, nb::arg("sizes"), nb::arg("strides"), nb::arg("offset") = 0,
           nb::sig("def view(self, sizes: collections.abc.Sequence[int | UOp], "
                   "strides: collections.abc.Sequence[int | UOp], offset: int | UOp = 0) -> UOp"),
           "A strided view of its elements in row-major order.")
      .def(
          "reduce_axis",
          [](const Graph& g, Op op, const nb::args& axes) {
            return Graph{g.arena, reduce_axis(op, g.root, ints_of(spread(axes)))};
          },
          nb::arg("op"), nb::arg("axes"),
          nb::sig("def reduce_axis(self, op: Ops, *axes: int | collections.abc.Sequence[int]) "
                  "-> UOp"),
          R"(Combined by an op over the axes, which stay with size 1.

>>> UOp.buffer(dtypes.float32, 6, "CPU", 0).reshape(2, 3).reduce_axis(Ops.ADD, 1).shape
(2, 1)
)")
      .def(
          "contiguous", [](const Graph& g) { return Graph{g.arena, contiguous(g.root)}; },
          "The same value in memory of its own.")
      .def(
          "detach", [](const Graph& g) { return Graph{g.arena, detach(g.root)}; },
          "The same value, without a gradient.")
      .def(
          "copy_to",
          [](const Graph& g, std::string_view name) {
            return Graph{g.arena, copy_to(g.root, name)};
          },
          nb::arg("device"), "The same value on another device.");
}

}  // namespace weft::python
