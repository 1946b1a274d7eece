// Ops and the other enums, from the tables that define them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "core.h"
#include "ir/dtype.h"
#include "ir/op.h"

namespace weft::python {
namespace {

nb::tuple arity_of(Op op) {
  const uint32_t most = info(op).most_sources;
  return nb::make_tuple(info(op).least_sources,
                        most == kMany ? nb::object(nb::none()) : nb::int_(most));
}

nb::tuple stages_of(Op op) {
  nb::list out;
  for (const Stage s : kStages) {
    if (is_legal_in(op, s)) out.append(s);
  }
  return nb::tuple(out);
}

std::string_view arg_kind_of(Op op) {
  constexpr std::array<std::string_view, 9> names = {"none", "const", "int",  "name",   "range",
                                                     "op",   "space", "ints", "op_ints"};
  return names[size_t(info(op).arg)];
}

void bind_ops(nb::module_& m) {
  nb::enum_<Op> ops(m, "Ops", R"(What a node computes.

>>> Ops.ADD.group, Ops.ADD.arity, Ops.ADD.commutes
('binary', (2, 2), True)
>>> Ops.SIN.doc
'The sine.'
>>> Ops.GEP.stages
(Stage.KERNEL, Stage.PROGRAM)
)");
  for (size_t i = 0; i < kOpCount; i++) {
    ops.value(std::string(name_of(Op(i))).c_str(), Op(i), std::string(info(Op(i)).doc).c_str());
  }
  ops.def_prop_ro(
         "group", [](Op op) { return name_of(info(op).group); },
         "The family: define, movement, tensor, ranges, memory, unary, binary, ternary "
         "or vector.")
      .def_prop_ro(
          "doc", [](Op op) { return info(op).doc; }, "What it does, in a line.")
      .def_prop_ro("arity", arity_of, nb::sig("def arity(self) -> tuple[int, int | None]"),
                   "The least and the most sources; None is any number.")
      .def_prop_ro("stages", stages_of, nb::sig("def stages(self) -> tuple[Stage, ...]"),
                   "Where it is legal.")
      .def_prop_ro("arg_kind", arg_kind_of,
                   "What its argument is: none, const, int, name, range, op, space, ints or "
                   "op_ints.")
      .def_prop_ro(
          "commutes", [](Op op) { return commutes(op); }, "x op y == y op x.")
      .def_prop_ro(
          "associative", [](Op op) { return is_associative(op); },
          "(x op y) op z == x op (y op z) on integers.")
      .def_prop_ro(
          "yields_bool", [](Op op) { return yields_bool(op); },
          "The result is bool, whatever the operands are.")
      .def_prop_ro(
          "is_effect", [](Op op) { return is_effect(op); },
          "It does something: AFTER and END order it.")
      .def_prop_ro("is_elementwise", [](Op op) { return is_elementwise(op); })
      .def_prop_ro("is_movement", [](Op op) { return is_movement(op); })
      .def(
          "__repr__", [](Op op) { return std::string("Ops.").append(name_of(op)); },
          nb::sig("def __repr__(self) -> str"));
}

}  // namespace

void bind_types(nb::module_& m) {
  nb::enum_<Stage> stages(m, "Stage", "How far a graph has come; see UOp.verify().");
  for (const Stage s : kStages) stages.value(upper(name_of(s)).c_str(), s);
  nb::enum_<AxisType> axes(m, "AxisType", "What a loop of a kernel is for.");
  for (int i = 0; i <= int(AxisType::kLane); i++) {
    axes.value(upper(name_of(AxisType(i))).c_str(), AxisType(i));
  }
  nb::enum_<AddrSpace> spaces(m, "AddrSpace", "Where a pointer points to.");
  for (const AddrSpace s :
       {AddrSpace::kNone, AddrSpace::kGlobal, AddrSpace::kLocal, AddrSpace::kReg}) {
    spaces.value(upper(name_of(s)).c_str(), s);
  }
  bind_ops(m);
}

}  // namespace weft::python
