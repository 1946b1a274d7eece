// Elementwise ops: Python's operators, and methods for the rest.
#include <cstdint>
#include <initializer_list>
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
#include "ir/spec.h"

namespace weft::python {
namespace {

enum class Side : uint8_t { kLeft, kRight };

using Build = UOp (*)(UOp, UOp);

template <Op op>
UOp build(UOp x, UOp y) {
  return binary(op, x, y);
}
UOp greater(UOp x, UOp y) { return binary(Op::CMPLT, y, x); }
UOp at_most(UOp x, UOp y) {
  if (!x.dtype().is_float()) return unary(Op::NOT, greater(x, y));
  // not (x > y) would hold with NaN
  return binary(Op::OR, binary(Op::CMPLT, x, y), binary(Op::CMPEQ, x, y));
}
UOp at_least(UOp x, UOp y) { return at_most(y, x); }

// self op other, or other op self; what is no operand is for Python to refuse.
template <Build make, Side self = Side::kLeft>
nb::object operate(const Graph& g, nb::handle other) {
  if (!nb::isinstance<Graph>(other) && !is_number(other)) return nb::borrow(Py_NotImplemented);
  const UOp o = operand_of(*g.arena, g.root.dtype(), other);
  return nb::cast(Graph{g.arena, self == Side::kLeft ? make(g.root, o) : make(o, g.root)});
}

template <Build make>
Graph method(const Graph& g, nb::handle other) {
  return {g.arena, make(g.root, operand_of(*g.arena, g.root.dtype(), other))};
}

template <Op op>
Graph apply(const Graph& g) {
  return {g.arena, unary(op, g.root)};
}

// The dtype that numbers among the operands take: that of the first UOp.
DType dtype_of_numbers(std::initializer_list<nb::handle> operands) {
  for (const nb::handle h : operands) {
    if (nb::isinstance<Graph>(h)) return nb::inst_ptr<Graph>(h)->root.dtype();
  }
  throw DTypeError("[where] two numbers have no dtype: make one a UOp.const");
}

Graph choose(const Graph& g, nb::handle x, nb::handle y) {
  const DType dtype = dtype_of_numbers({x, y});
  return {g.arena, where(g.root, operand_of(*g.arena, dtype, x), operand_of(*g.arena, dtype, y))};
}

Graph fuse(const Graph& g, nb::handle y, nb::handle z) {
  const DType dtype = g.root.dtype();
  return {g.arena, mulacc(g.root, operand_of(*g.arena, dtype, y), operand_of(*g.arena, dtype, z))};
}

Graph alu(const Graph& g, Op op, const nb::args& others) {
  if (!is_elementwise(op) || op == Op::CAST || op == Op::BITCAST) {
    throw SpecError(fmt::format("[alu] {} is no elementwise op of operands alone", name_of(op)));
  }
  if (op == Op::WHERE && others.size() == 2) return choose(g, others[0], others[1]);
  std::vector<UOp> srcs = operands_of(*g.arena, g.root.dtype(), others);
  srcs.insert(srcs.begin(), g.root);
  const DType dtype = yields_bool(op) ? dtypes::bool_.vec(g.root.dtype().lanes) : g.root.dtype();
  const UOp n = g.arena->make(op, dtype, srcs);
  check_node(n);
  return {g.arena, n};
}

template <Build make>
void operator_of(UOpClass& c, const char* name, const char* signature) {
  c.def(name, operate<make>, nb::is_operator(), nb::sig(signature));
}

// The operator and its reflection.
template <Build make>
void operators_of(UOpClass& c, const char* name, const char* signature, const char* reflected,
                  const char* reflected_signature) {
  c.def(name, operate<make>, nb::is_operator(), nb::sig(signature));
  c.def(reflected, operate<make, Side::kRight>, nb::is_operator(), nb::sig(reflected_signature));
}

#define WEFT_OPERATOR(make, name) \
  operator_of<make>(c, "__" name "__", "def __" name "__(self, other: UOp | int | float, /) -> UOp")
#define WEFT_OPERATORS(make, name)                                                 \
  operators_of<make>(c, "__" name "__",                                            \
                     "def __" name "__(self, other: UOp | int | float, /) -> UOp", \
                     "__r" name "__", "def __r" name "__(self, other: int | float, /) -> UOp")
#define WEFT_METHOD(make, name, doc)          \
  c.def(name, method<make>, nb::arg("other"), \
        nb::sig("def " name "(self, other: UOp | int | float) -> UOp"), doc)

void bind_python_operators(UOpClass& c) {
  WEFT_OPERATORS(build<Op::ADD>, "add");
  WEFT_OPERATORS(build<Op::SUB>, "sub");
  WEFT_OPERATORS(build<Op::MUL>, "mul");
  WEFT_OPERATORS(build<Op::FDIV>, "truediv");
  WEFT_OPERATORS(build<Op::IDIV>, "floordiv");
  WEFT_OPERATORS(build<Op::MOD>, "mod");
  WEFT_OPERATORS(build<Op::AND>, "and");
  WEFT_OPERATORS(build<Op::OR>, "or");
  WEFT_OPERATORS(build<Op::XOR>, "xor");
  WEFT_OPERATORS(build<Op::SHL>, "lshift");
  WEFT_OPERATORS(build<Op::SHR>, "rshift");
  WEFT_OPERATOR(build<Op::CMPLT>, "lt");
  WEFT_OPERATOR(at_most, "le");
  WEFT_OPERATOR(greater, "gt");
  WEFT_OPERATOR(at_least, "ge");
  c.def("__neg__", apply<Op::NEG>).def("__invert__", apply<Op::NOT>);
}

}  // namespace

void bind_operators(UOpClass& c) {
  bind_python_operators(c);
  WEFT_METHOD(build<Op::CMPEQ>, "eq", "A node that compares: x == y.");
  WEFT_METHOD(build<Op::CMPNE>, "ne", "A node that compares: x != y.");
  WEFT_METHOD(build<Op::MAX>, "max", "The larger one; NaN wins.");
  WEFT_METHOD(build<Op::MIN>, "min", "The smaller one; NaN wins.");
  WEFT_METHOD(build<Op::CDIV>, "cdiv", "Integer division rounded towards zero.");
  WEFT_METHOD(build<Op::CMOD>, "cmod", "What cdiv leaves, with the sign of x.");
  c.def("alu", alu, nb::arg("op"), nb::arg("others"),
        nb::sig("def alu(self, op: Ops, *others: UOp | int | float) -> UOp"),
        R"(An elementwise op with this as its first operand.

>>> print(UOp.const(dtypes.float32, 2).alu(Ops.SQRT))
sqrt(2.0)
)")
      .def("where", choose, nb::arg("x"), nb::arg("y"),
           nb::sig("def where(self, x: UOp | int | float, y: UOp | int | float) -> UOp"),
           R"(x where this condition holds, else y.

>>> r = UOp.range(9, 0)
>>> print((r < 4).where(r, 0))
where(r0 < 4, r0, 0)
)")
      .def("mulacc", fuse, nb::arg("y"), nb::arg("z"),
           nb::sig("def mulacc(self, y: UOp | int | float, z: UOp | int | float) -> UOp"),
           "self * y + z with one rounding.")
      .def(
          "cast", [](const Graph& g, DType t) { return Graph{g.arena, cast(g.root, t)}; },
          nb::arg("dtype"), "The value in another dtype.")
      .def(
          "bitcast", [](const Graph& g, DType t) { return Graph{g.arena, bitcast(g.root, t)}; },
          nb::arg("dtype"), "The same bits in another dtype of the same width.")
      .def("sqrt", apply<Op::SQRT>, "The square root.")
      .def("recip", apply<Op::RECIP>, "1 / x.")
      .def("exp2", apply<Op::EXP2>, "2 to the power x.")
      .def("log2", apply<Op::LOG2>, "The logarithm to base 2.")
      .def("exp", apply<Op::EXP>, "e to the power x.")
      .def("log", apply<Op::LOG>, "The natural logarithm.")
      .def("sin", apply<Op::SIN>, "The sine.")
      .def("cos", apply<Op::COS>, "The cosine.")
      .def("trunc", apply<Op::TRUNC>, "Rounded towards zero.")
      .def("floor", apply<Op::FLOOR>, "Rounded down.")
      .def("ceil", apply<Op::CEIL>, "Rounded up.")
      .def("round", apply<Op::ROUND>, "Rounded to the nearest integer, halves to even.");
}

}  // namespace weft::python
