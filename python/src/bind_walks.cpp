// Whole graphs: orders, substitution, counts, the spec.
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "base/error.h"
#include "convert.h"
#include "core.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "ir/walk.h"

namespace weft::python {
namespace {

nb::list nodes_in_order(const Graph& g) {
  nb::list out;
  for (const UOp n : toposort(g.root)) out.append(Graph{g.arena, n});
  return out;
}

Graph substituted(const Graph& g, const nb::dict& replacements) {
  std::vector<std::pair<UOp, UOp>> pairs;
  for (const auto& [from, to] : replacements) {
    const UOp f = import_into(*g.arena, graph_of(from, "what is replaced"));
    pairs.emplace_back(f, operand_of(*g.arena, f.dtype(), to));
  }
  return {g.arena, substitute(g.root, pairs)};
}

nb::dict counts(const Summary& s) {
  nb::dict out;
  for (size_t i = 0; i < kOpCount; i++) {
    if (s.by_op[i] > 0) out[nb::cast(Op(i))] = s.by_op[i];
  }
  return out;
}

// The error of verify(), with the node that it is about.
void verify_graph(const Graph& g, Stage stage, std::string_view after_pass) {
  const std::optional<Violation> violation = find_violation(g.root, stage);
  if (!violation) return;
  try {
    verify(g.root, stage, after_pass);
  } catch (const SpecError& e) {
    const nb::object type = nb::module_::import_("weft.errors").attr("SpecError");
    const nb::object error = type(text(e.what()), Graph{g.arena, violation->node});
    PyErr_SetObject(type.ptr(), error.ptr());
    throw nb::python_error();
  }
}

}  // namespace

void bind_walks(nb::module_& m, UOpClass& c) {
  nb::class_<Summary>(m, "Summary", "What a graph is made of.")
      .def_ro("nodes", &Summary::nodes, "How many nodes it has.")
      .def_ro("edges", &Summary::edges, "How many sources its nodes have together.")
      .def_ro("depth", &Summary::depth, "The nodes on its longest path.")
      .def_prop_ro("by_op", counts, nb::sig("def by_op(self) -> dict[Ops, int]"),
                   "How many nodes it has of every op.")
      .def("__str__", &Summary::text)
      .def("__repr__", &Summary::text);
  c.def("toposort", nodes_in_order, nb::sig("def toposort(self) -> list[UOp]"),
        R"(All nodes of the graph, sources before users, this one last.

>>> [u.op.name for u in (UOp.range(4, 0) + 1).toposort()]
['CONST', 'RANGE', 'CONST', 'ADD']
)")
      .def("substitute", substituted, nb::arg("replacements"),
           nb::sig("def substitute(self, replacements: "
                   "dict[UOp, UOp | int | float]) -> UOp"),
           R"(The graph with every key replaced by its value, everywhere.

>>> n = UOp.variable("n", 1, 9)
>>> print((n*2 + n).substitute({n: 5}))
5*2 + 5
)")
      .def(
          "summary", [](const Graph& g) { return summarize(g.root); },
          R"(What the graph is made of.

>>> (UOp.range(4, 0) + 1).summary()
4 nodes, 3 edges, depth 3: CONST 2, RANGE 1, ADD 1
)")
      .def("verify", verify_graph, nb::arg("stage"), nb::arg("after_pass") = "",
           R"(Raises SpecError, which names the first node that is not legal at the stage.

>>> UOp.range(4, 0).verify(Stage.TENSOR)
Traceback (most recent call last):
weft.errors.SpecError: RANGE: it is not legal in the tensor stage; its stages are rangeified, kernel, program
  RANGE index (4) 0:loop
    source 0: CONST index 4
  in the tensor stage
)");
}

}  // namespace weft::python
