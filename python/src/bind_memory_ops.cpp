// The ops of kernels: ranges, memory, order, vectors; and the write.
#include <cstdint>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include "base/error.h"
#include "convert.h"
#include "core.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft::python {
namespace {

Graph load_of(const Graph& g, nb::handle gate, nb::handle otherwise) {
  if (gate.is_none() != otherwise.is_none()) {
    throw SpecError("[load] a gate needs the value otherwise, and the other way round");
  }
  if (gate.is_none()) return {g.arena, load(g.root)};
  return {g.arena, load(g.root, operand_of(*g.arena, dtypes::bool_, gate),
                        operand_of(*g.arena, g.root.dtype().pointee(), otherwise))};
}

Graph assign(const Graph& g, nb::handle value, nb::handle gate) {
  const UOp v = operand_of(*g.arena, g.root.dtype().pointee(), value);
  if (gate.is_none()) return {g.arena, g.root.assign(v)};
  return {g.arena, g.root.assign(v, operand_of(*g.arena, dtypes::bool_, gate))};
}

Graph barrier_of(const Graph& g, const nb::args& more) {
  std::vector<UOp> effects = nodes_of(*g.arena, more, "an effect");
  effects.insert(effects.begin(), g.root);
  return {g.arena, barrier(effects)};
}

Graph vectorize_of(const Graph& g, const nb::args& more) {
  std::vector<UOp> lanes = operands_of(*g.arena, g.root.dtype(), more);
  lanes.insert(lanes.begin(), g.root);
  if (lanes.size() > UINT16_MAX) {
    throw DTypeError(
        fmt::format("[vectorize] a vector has up to 65535 lanes, not {}", lanes.size()));
  }
  return {g.arena, vectorize(lanes)};
}

Graph gep_of(const Graph& g, const nb::args& lanes) {
  const std::vector<int64_t> list = ints_of(spread(lanes));
  if (list.empty() || list.size() > UINT16_MAX) {
    throw DTypeError(fmt::format("[gep] a vector has 1 to 65535 lanes, not {}", list.size()));
  }
  return {g.arena, gep(g.root, list)};
}

}  // namespace

void bind_memory_ops(UOpClass& c) {
  c.def(
       "bind",
       [](const Graph& g, nb::handle value) {
         return Graph{g.arena, bind(g.root, operand_of(*g.arena, g.root.dtype(), value))};
       },
       nb::arg("value"), nb::sig("def bind(self, value: UOp | int) -> UOp"),
       "A VARIABLE with the value that it has in this call.")
      .def(
          "reduce",
          [](const Graph& g, Op op, const nb::args& ranges) {
            return Graph{g.arena, reduce(op, g.root, nodes_of(*g.arena, ranges, "a range"))};
          },
          nb::arg("op"), nb::arg("ranges"),
          nb::sig("def reduce(self, op: Ops, *ranges: UOp) -> UOp"),
          "Combined over the ranges by an op.")
      .def(
          "bufferize",
          [](const Graph& g, const nb::args& ranges, AddrSpace space) {
            return Graph{g.arena, bufferize(g.root, nodes_of(*g.arena, ranges, "a range"), space)};
          },
          nb::arg("ranges"), nb::arg("space") = AddrSpace::kGlobal,
          nb::sig("def bufferize(self, *ranges: UOp, space: AddrSpace = ...) -> UOp"),
          "Its values for all values of the ranges, stored.")
      .def(
          "index",
          [](const Graph& g, const nb::args& indices) {
            return Graph{g.arena, index(g.root, operands_of(*g.arena, dtypes::index, indices))};
          },
          nb::sig("def index(self, *indices: UOp | int) -> UOp"),
          "An element; of a pointer, the pointer to that element.")
      .def("load", load_of, nb::arg("gate") = nb::none(), nb::arg("otherwise") = nb::none(),
           nb::sig("def load(self, gate: UOp | bool | None = None, "
                   "otherwise: UOp | int | float | None = None) -> UOp"),
           "What memory holds; with a gate, `otherwise` where it is off.")
      .def(
          "assign", assign, nb::arg("value"), nb::arg("gate") = nb::none(),
          nb::sig("def assign(self, value: UOp | int | float, gate: UOp | bool | None = None) "
                  "-> UOp"),
          R"(The STORE of a value here: to a view of a tensor, a pointer from index(), or a register.

>>> out, r = UOp.define_global(dtypes.float32, 8, 0), UOp.range(8, 0)
>>> out.index(r).assign(1.0).end(r)
END void (store(data0[r0], 1.0), r0)
>>> UOp.define_reg(dtypes.float32, 0).assign(0.0).dtype
dtypes.float32
)")
      .def(
          "accumulate",
          [](const Graph& g, Op op, nb::handle value) {
            return Graph{g.arena,
                         g.root.accumulate(op, operand_of(*g.arena, g.root.dtype(), value))};
          },
          nb::arg("op"), nb::arg("value"),
          nb::sig("def accumulate(self, op: Ops, value: UOp | int | float) -> UOp"),
          "The STORE that combines what is here with a value by ADD, MUL, MAX or MIN.")
      .def(
          "after",
          [](const Graph& g, const nb::args& effects) {
            return Graph{g.arena, after(g.root, nodes_of(*g.arena, effects, "an effect"))};
          },
          nb::sig("def after(self, *effects: UOp) -> UOp"), "This, once the effects have happened.")
      .def(
          "end",
          [](const Graph& g, const nb::args& ranges) {
            return Graph{g.arena, end(g.root, nodes_of(*g.arena, ranges, "a range"))};
          },
          nb::sig("def end(self, *ranges: UOp) -> UOp"),
          "This effect for all values of the ranges.")
      .def("barrier", barrier_of, nb::sig("def barrier(self, *more: UOp) -> UOp"),
           "All threads of a workgroup have done this effect, and more of them.")
      .def("vectorize", vectorize_of,
           nb::sig("def vectorize(self, *more: UOp | int | float) -> UOp"),
           "A vector of this lane, and more of them.")
      .def("gep", gep_of,
           nb::sig("def gep(self, *lanes: int | collections.abc.Sequence[int]) -> UOp"),
           "Lanes of a vector.");
}

}  // namespace weft::python
