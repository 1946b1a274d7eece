// UOp: what a node is made of, facts about it, equality, text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "base/error.h"
#include "convert.h"
#include "core.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/scope.h"
#include "ir/shape.h"
#include "ir/walk.h"

namespace weft::python {
namespace {

// ---------------------------------------------------------------------------------------- equality

bool same_argument(UOp a, UOp b) {
  const ArgKind kind = info(a.op()).arg;
  switch (kind) {
    case ArgKind::Name: return a.name() == b.name();
    case ArgKind::Ints: return std::ranges::equal(a.ints(), b.ints());
    case ArgKind::OpInts: return a.arg_op() == b.arg_op() && std::ranges::equal(a.ints(), b.ints());
    default: return a.arg_word() == b.arg_word();
  }
}

bool same_but_sources(UOp a, UOp b) {
  return a.hash() == b.hash() && a.op() == b.op() && a.dtype() == b.dtype() &&
         a.src_count() == b.src_count() && same_argument(a, b);
}

// Whether two graphs have one structure, in time linear in their size.
bool same_structure(UOp a, UOp b) {
  if (&a.arena() == &b.arena()) return a == b;
  NodeMap partners(a.arena());
  std::vector<std::pair<UOp, UOp>> todo{{a, b}};
  while (!todo.empty()) {
    const auto [x, y] = todo.back();
    todo.pop_back();
    if (partners.has(x)) {
      if (partners.get(x) != y) return false;
      continue;
    }
    if (!same_but_sources(x, y)) return false;
    partners.put(x, y);
    for (size_t i = 0; i < x.src_count(); i++) todo.emplace_back(x.src(i), y.src(i));
  }
  return true;
}

nb::object compare(const Graph& a, nb::handle b, bool when_same) {
  if (!nb::isinstance<Graph>(b)) return nb::borrow(Py_NotImplemented);
  return nb::bool_(same_structure(a.root, nb::inst_ptr<Graph>(b)->root) == when_same);
}

// ------------------------------------------------------------------------------------------- facts

nb::tuple shape(const Graph& g) {
  nb::list out;
  for (const Dim d : shape_of(g.root)) {
    out.append(d.is_int() ? nb::cast(d.value()) : nb::cast(Graph{g.arena, d.node()}));
  }
  return nb::tuple(out);
}

std::optional<int64_t> least(const Graph& g) {
  const int64_t lo = bounds(g.root).lo;
  return lo == Interval::kLow ? std::nullopt : std::optional(lo);
}
std::optional<int64_t> most(const Graph& g) {
  const int64_t hi = bounds(g.root).hi;
  return hi == Interval::kHigh ? std::nullopt : std::optional(hi);
}

uint64_t const_bits(const Graph& g) {
  if (!g.root.is_const()) throw SpecError("[bits] only a CONST has bits");
  const int width = g.root.dtype().bits();
  return width == 0 || width == 64 ? g.root.bits() : g.root.bits() & ((uint64_t(1) << width) - 1);
}

// --------------------------------------------------------------------------------------- raw nodes

// Sources of any op; the first names the arena.
Graph make(Op op, DType dtype, nb::handle src, nb::handle arg) {
  const std::shared_ptr<Arena> arena = arena_of(src);
  ArgMemory memory;
  const Arg a = arg_of_python(op, dtype, arg, memory);
  return {arena, arena->make(op, dtype, nodes_of(*arena, src, "a source"), a)};
}

Graph replace(const Graph& g, const nb::kwargs& changes) {
  auto part = [&](const char* name, auto&& otherwise) -> nb::object {
    return changes.contains(name) ? nb::object(changes[name]) : nb::object(otherwise());
  };
  for (const auto& [key, value] : changes) {
    const auto name = nb::cast<std::string_view>(key);
    if (name != "op" && name != "dtype" && name != "src" && name != "arg") {
      type_error("[replace] the parts of a UOp are op, dtype, src and arg");
    }
  }
  const nb::object op = part("op", [&] { return nb::cast(g.root.op()); });
  const nb::object dtype = part("dtype", [&] { return nb::cast(g.root.dtype()); });
  const nb::object src = part("src", [&] { return tuple_of(g.arena, g.root.srcs()); });
  const nb::object arg = part("arg", [&] { return python_of_arg(g.root); });
  Op new_op{};
  DType new_dtype{};
  if (!nb::try_cast(op, new_op) || !nb::try_cast(dtype, new_dtype)) {
    type_error("[replace] op must be an Ops and dtype a DType");
  }
  ArgMemory memory;
  Arg a = arg_of_python(new_op, new_dtype, arg, memory);
  // Bits that no number shows, as those of a NaN, stay as they are.
  const bool keeps_arg = !changes.contains("arg") && new_op == g.root.op() &&
                         new_dtype == g.root.dtype() && g.root.is_const();
  if (keeps_arg) a = Arg::bits(g.root.bits());
  return {g.arena, g.arena->make(new_op, new_dtype, nodes_of(*g.arena, src, "a source"), a)};
}

Graph parse_text(std::string_view source) {
  const std::shared_ptr<Arena> arena = current_arena();
  return {arena, parse(*arena, source)};
}

void bind_parts(UOpClass& c) {
  c.def_prop_ro(
       "op", [](const Graph& g) { return g.root.op(); }, "What it computes.")
      .def_prop_ro(
          "dtype", [](const Graph& g) { return g.root.dtype(); }, "The type of its value.")
      .def_prop_ro(
          "src", [](const Graph& g) { return tuple_of(g.arena, g.root.srcs()); },
          nb::sig("def src(self) -> tuple[UOp, ...]"), "Its sources.")
      .def_prop_ro(
          "arg", [](const Graph& g) { return python_of_arg(g.root); },
          nb::sig("def arg(self) -> typing.Any"),
          R"(Its argument; op.arg_kind says what it is.

const: bool, int or float; int: int; name: str; range: (id, AxisType); op: Ops; space: AddrSpace;
ints: a tuple; op_ints: (Ops, tuple); none: None.

>>> UOp.const(dtypes.uint64, 2**64 - 1).arg == 2**64 - 1
True
>>> UOp.range(8, 3, AxisType.REDUCE).arg
(3, AxisType.REDUCE)
)")
      .def_prop_ro("bits", const_bits,
                   R"(The bits of a constant in the width of its dtype: what tells NaNs apart.

>>> hex(UOp.const(dtypes.float32, -0.0).bits)
'0x80000000'
)")
      .def_prop_ro(
          "arena", [](const Graph& g) { return ArenaScope{g.arena}; }, "Where it lives.")
      .def_prop_ro("shape", shape, nb::sig("def shape(self) -> tuple[int | UOp, ...]"),
                   R"(The shape of its value; () for scalars. A symbolic size is a UOp.

>>> UOp.buffer(dtypes.int32, 6, "CPU", 0).reshape(2, 3).shape
(2, 3)
)")
      .def_prop_ro("vmin", least,
                   "The least value that an integer node can take; None where none is known.")
      .def_prop_ro("vmax", most, R"(The greatest value that an integer node can take.

>>> u = UOp.range(10, 0) * 3 % 8
>>> u.vmin, u.vmax
(0, 7)
)")
      .def_prop_ro(
          "ranges", [](const Graph& g) { return tuple_of(g.arena, ranges_of(g.root)); },
          nb::sig("def ranges(self) -> tuple[UOp, ...]"),
          "The RANGEs that it depends on and nothing below it has closed, by id.")
      .def_prop_ro(
          "hash", [](const Graph& g) { return g.root.hash(); },
          "64 bits of its structure, the same in every process.")
      .def_prop_ro(
          "key", [](const Graph& g) { return graph_hash(g.root).hex(); },
          "128 bits of its structure, in hex: the identity of the graph in caches.");
}

}  // namespace

void bind_node(nb::module_& m, UOpClass& c) {
  bind_parts(c);
  c.def(
       "__eq__", [](const Graph& a, nb::handle b) { return compare(a, b, true); },
       nb::sig("def __eq__(self, other: object, /) -> bool"), "Whether the structure is the same.")
      .def(
          "__ne__", [](const Graph& a, nb::handle b) { return compare(a, b, false); },
          nb::sig("def __ne__(self, other: object, /) -> bool"))
      .def(
          "__hash__", [](const Graph& g) { return Py_hash_t(g.root.hash()); },
          nb::sig("def __hash__(self) -> int"))
      .def(
          "__bool__",
          [](const Graph&) -> bool {
            type_error("a UOp is neither true nor false: compare with `is None`, or look at .arg");
          },
          nb::sig("def __bool__(self) -> typing.NoReturn"))
      .def("__repr__", [](const Graph& g) { return text(describe(g.root)); })
      .def("__str__", [](const Graph& g) { return text(short_form(g.root)); })
      .def("__getstate__", [](const Graph& g) { return print(g.root); })
      .def("__setstate__",
           [](Graph& g, std::string_view source) { new (&g) Graph(parse_text(source)); })
      .def(
          "short", [](const Graph& g, size_t length) { return text(short_form(g.root, length)); },
          nb::arg("length") = 400, "The way people write it, cut at so many characters.")
      .def(
          "print", [](const Graph& g) { return print(g.root); },
          R"(The exact text, a line per node; parse() reads it back.

>>> print((UOp.range(4, 0) + 1).print(), end="")
%0 = CONST index 4
%1 = RANGE index (%0) 0:loop
%2 = CONST index 1
%3 = ADD index (%1, %2)
)")
      .def(
          "to_dot", [](const Graph& g) { return text(to_dot(g.root)); }, "The graph for Graphviz.")
      .def_static(
          "new", make, nb::arg("op"), nb::arg("dtype"), nb::arg("src") = nb::tuple(),
          nb::arg("arg") = nb::none(),
          nb::sig("def new(op: Ops, dtype: DType, src: collections.abc.Sequence[UOp] = (), "
                  "arg: typing.Any = None) -> UOp"),
          R"(A node with this content. Any structure is allowed: verify() says what is legal.

>>> UOp.new(Ops.RANGE, dtypes.index, (UOp.const(dtypes.index, 4),), (0, AxisType.LOOP))
RANGE index (4) 0:loop
)")
      .def("replace", replace,
           nb::sig("def replace(self, *, op: Ops = ..., dtype: DType = ..., "
                   "src: collections.abc.Sequence[UOp] = ..., arg: typing.Any = ...) -> UOp"),
           R"(The node with some of its parts changed, unchecked.

>>> print((UOp.range(4, 0) + 1).replace(op=Ops.MUL))
r0*1
)");
  c.attr("__array_ufunc__") = nb::none();  // `numpy_scalar + uop` is for UOp to build
  m.def(
      "parse", parse_text, nb::arg("text"),
      R"doc(The graph that UOp.print() wrote. Empty lines and lines that start with # are passed over.

>>> parse("%0 = CONST float32 1.5\n%1 = NEG float32 (%0)")
NEG float32 (1.5)
)doc");
}

}  // namespace weft::python
