// Conversions: numbers are exact, and what does not fit is an error that says so.
#include "convert.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include "base/error.h"
#include "core.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "tensor.h"

namespace weft::python {
namespace {

bool has_float(nb::handle value) {
  const PyNumberMethods* methods = Py_TYPE(value.ptr())->tp_as_number;
  return methods != nullptr && methods->nb_float != nullptr;
}

// NumPy's bool is no integer for Python.
bool is_numpy_bool(nb::handle value) {
  const std::string_view name = Py_TYPE(value.ptr())->tp_name;
  return name == "numpy.bool" || name == "numpy.bool_";
}

bool is_integer(nb::handle value) { return PyIndex_Check(value.ptr()) != 0; }

nb::object owned(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

std::string shown(nb::handle value) { return nb::cast<std::string>(nb::repr(value)); }

[[noreturn]] void no_value(DType type, nb::handle value) {
  throw DTypeError(fmt::format("[const] {} is not a value of {}", shown(value), type.name()));
}

// An int of Python: its value where 64 bits, signed or unsigned, hold it.
struct Integer {
  std::optional<int64_t> as_signed;
  std::optional<uint64_t> as_unsigned;
};
Integer read_integer(nb::handle value) {
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (small == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (overflow == 0) {
    return {small, small >= 0 ? std::optional(uint64_t(small)) : std::nullopt};
  }
  if (overflow < 0) return {};
  const unsigned long long large = PyLong_AsUnsignedLongLong(value.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return {};
  }
  return {std::nullopt, large};
}

uint64_t float_bits(DType type, nb::handle value) {
  uint64_t bits = 0;
  bool is_finite = true;
  if (!is_integer(value)) {
    const double d = PyFloat_AsDouble(owned(PyNumber_Float(value.ptr())).ptr());
    is_finite = std::isfinite(d);
    bits = bits_of_double(type, d);
  } else {
    const nb::object integer = owned(PyNumber_Index(value.ptr()));
    const Integer i = read_integer(integer);
    if (i.as_signed) {
      bits = bits_of_int(type, *i.as_signed);
    } else {
      const double d = PyLong_AsDouble(integer.ptr());
      if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        no_value(type, value);
      }
      bits = bits_of_double(type, d);
    }
  }
  if (is_finite && !std::isfinite(double_of_bits(type, bits))) no_value(type, value);
  return bits;
}

}  // namespace

// ----------------------------------------------------------------------------------------- numbers

bool is_number(nb::handle value) { return is_integer(value) || has_float(value); }

uint64_t bits_of_number(DType type, nb::handle value) {
  if (is_numpy_bool(value)) return bits_of_number(type, nb::bool_(nb::object(nb::borrow(value))));
  if (!is_number(value)) {
    type_error(fmt::format("[const] a number is needed, not {}", type_text(value)));
  }
  if (type.is_void() || type.is_pointer()) {
    throw DTypeError(fmt::format("[const] {} has no constants", type.name()));
  }
  if (type.is_float()) return float_bits(type, value);
  if (!is_integer(value)) {
    throw DTypeError(fmt::format("[const] {} is a float, {} is not", shown(value), type.name()));
  }
  const Integer i = read_integer(owned(PyNumber_Index(value.ptr())));
  if (type.is_signed()) {
    if (!i.as_signed || int64_t(bits_of_int(type, *i.as_signed)) != *i.as_signed) {
      no_value(type, value);
    }
    return uint64_t(*i.as_signed);
  }
  if (!i.as_unsigned || bits_of_uint(type, *i.as_unsigned) != *i.as_unsigned) no_value(type, value);
  return *i.as_unsigned;
}

nb::object number_of_bits(DType type, uint64_t bits) {
  if (type.is_bool()) return nb::bool_(bits != 0);
  if (type.is_float()) return nb::float_(double_of_bits(type, bits));
  return owned(type.is_signed() ? PyLong_FromLongLong(int64_t(bits))
                                : PyLong_FromUnsignedLongLong(bits));
}

// ---------------------------------------------------------------------------------------- operands

const Graph& graph_of(nb::handle value, std::string_view what) {
  if (!nb::isinstance<Graph>(value)) {
    type_error(fmt::format("{} must be a UOp, not {}", what, type_text(value)));
  }
  return *nb::inst_ptr<Graph>(value);
}

UOp operand_of(Arena& arena, DType like, nb::handle value) {
  if (nb::isinstance<Graph>(value)) return import_into(arena, *nb::inst_ptr<Graph>(value));
  if (!is_number(value)) {
    type_error(fmt::format("an operand must be a UOp or a number, not {}", type_text(value)));
  }
  return arena.make(Op::CONST, like, {}, Arg::bits(bits_of_number(like, value)));
}

std::vector<UOp> operands_of(Arena& arena, DType like, nb::handle sequence) {
  std::vector<UOp> out;
  for (const nb::handle h : sequence) out.push_back(operand_of(arena, like, h));
  return out;
}

std::vector<UOp> nodes_of(Arena& arena, nb::handle sequence, std::string_view what) {
  std::vector<UOp> out;
  for (const nb::handle h : sequence) out.push_back(import_into(arena, graph_of(h, what)));
  return out;
}

std::shared_ptr<Arena> arena_of(nb::handle values) {
  if (nb::isinstance<Graph>(values)) return nb::inst_ptr<Graph>(values)->arena;
  if (!PyTuple_Check(values.ptr()) && !PyList_Check(values.ptr())) return current_arena();
  for (const nb::handle h : values) {
    if (nb::isinstance<Graph>(h)) return nb::inst_ptr<Graph>(h)->arena;
  }
  return current_arena();
}

// ------------------------------------------------------------------------------------------- sizes

Dim dim_of(Arena& arena, nb::handle value) {
  if (nb::isinstance<Graph>(value)) {
    const UOp n = import_into(arena, *nb::inst_ptr<Graph>(value));
    if (n.dtype() != dtypes::index) {
      throw DTypeError(fmt::format("[size] a size has dtype index, not {}", n.dtype().name()));
    }
    return n;
  }
  if (!is_integer(value)) {
    type_error(fmt::format("a size must be an int or a UOp, not {}", type_text(value)));
  }
  const Integer i = read_integer(owned(PyNumber_Index(value.ptr())));
  constexpr int64_t most = (int64_t(1) << 62) - 1;
  if (!i.as_signed || *i.as_signed > most || *i.as_signed < -most) {
    throw ShapeError(fmt::format("[size] {} does not fit into 63 bits", shown(value)));
  }
  return *i.as_signed;
}

std::vector<Dim> dims_of(Arena& arena, nb::handle sequence) {
  std::vector<Dim> out;
  for (const nb::handle h : sequence) out.push_back(dim_of(arena, h));
  return out;
}

std::vector<std::pair<Dim, Dim>> dim_pairs_of(Arena& arena, nb::handle sequence) {
  std::vector<std::pair<Dim, Dim>> out;
  for (const nb::handle pair : sequence) {
    const std::vector<Dim> both = dims_of(arena, pair);
    if (both.size() != 2) {
      throw ShapeError(fmt::format("[size] {} is no pair of sizes", shown(pair)));
    }
    out.emplace_back(both[0], both[1]);
  }
  return out;
}

nb::object spread(const nb::args& args) {
  if (args.size() == 1 && (PyTuple_Check(args[0].ptr()) || PyList_Check(args[0].ptr()))) {
    return nb::borrow(args[0]);
  }
  return args;
}

std::vector<int64_t> ints_of(nb::handle sequence) {
  std::vector<int64_t> out;
  for (const nb::handle h : sequence) {
    if (!is_integer(h)) type_error(fmt::format("an int is needed, not {}", type_text(h)));
    const nb::object watched = number_of_watched(h);
    const Integer i = read_integer(watched.is_valid() ? watched : owned(PyNumber_Index(h.ptr())));
    if (!i.as_signed) throw ShapeError(fmt::format("{} does not fit into 64 bits", shown(h)));
    out.push_back(*i.as_signed);
  }
  return out;
}

int64_t checked_range_id(int64_t id) {
  if (id < 0 || id >= int64_t(1) << 56) {
    throw SpecError(fmt::format("[range] the id is {}; ids are from 0 to 2^56 - 1", id));
  }
  return id;
}

// --------------------------------------------------------------------------------------- arguments

namespace {

[[noreturn]] void wrong_argument(Op op, std::string_view needed, nb::handle given) {
  type_error(fmt::format("[new] the argument of {} is {}, not {}", name_of(op), needed,
                         given.is_none() ? "None" : shown(given)));
}

template <class T>
T argument(Op op, std::string_view needed, nb::handle given, nb::handle value) {
  T out{};
  constexpr bool is_enum = std::is_enum_v<T>;  // which a number does not stand for
  if (!nb::try_cast<T>(value, out, !is_enum)) wrong_argument(op, needed, given);
  return out;
}

// Both elements of a pair.
std::pair<nb::object, nb::object> pair_of(Op op, std::string_view needed, nb::handle value) {
  if (!PyTuple_Check(value.ptr()) || nb::len(value) != 2) wrong_argument(op, needed, value);
  return {value[0], value[1]};
}

std::string bytes_of_name(Op op, nb::handle value) {
  if (!PyUnicode_Check(value.ptr())) wrong_argument(op, "a str", value);
  const nb::object bytes =
      owned(PyUnicode_AsEncodedString(value.ptr(), "utf-8", "surrogateescape"));
  return {PyBytes_AsString(bytes.ptr()), size_t(PyBytes_Size(bytes.ptr()))};
}

nb::object tuple_of_ints(UOp n) {
  nb::list out;
  for (const int64_t i : n.ints()) out.append(i);
  return nb::tuple(out);
}

bool is_sequence(nb::handle h) { return PyTuple_Check(h.ptr()) || PyList_Check(h.ptr()); }

}  // namespace

Arg arg_of_python(Op op, DType dtype, nb::handle value, ArgMemory& memory) {
  const ArgKind kind = info(op).arg;
  switch (kind) {
    case ArgKind::None:
      if (!value.is_none()) wrong_argument(op, "None", value);
      return {};
    case ArgKind::Const:
      if (!is_number(value)) wrong_argument(op, "a number", value);
      return Arg::bits(bits_of_number(dtype, value));
    case ArgKind::Int: return Arg::integer(argument<int64_t>(op, "an int", value, value));
    case ArgKind::Name: memory.name = bytes_of_name(op, value); return Arg::name(memory.name);
    case ArgKind::Range: {
      constexpr std::string_view needed = "(id, AxisType)";
      const auto [id, axis] = pair_of(op, needed, value);
      return Arg::range(checked_range_id(argument<int64_t>(op, needed, value, id)),
                        argument<AxisType>(op, needed, value, axis));
    }
    case ArgKind::Op: return Arg::op(argument<Op>(op, "an Ops", value, value));
    case ArgKind::MaybeOp:
      if (value.is_none()) return {};
      return Arg::op(argument<Op>(op, "an Ops or None", value, value));
    case ArgKind::Space: return Arg::space(argument<AddrSpace>(op, "an AddrSpace", value, value));
    case ArgKind::Ints:
      if (!is_sequence(value)) wrong_argument(op, "a tuple of ints", value);
      memory.ints = ints_of(value);
      return Arg::ints(memory.ints);
    case ArgKind::OpInts: {
      constexpr std::string_view needed = "(Ops, ints)";
      const auto [first, list] = pair_of(op, needed, value);
      if (!is_sequence(list)) wrong_argument(op, needed, value);
      memory.ints = ints_of(list);
      memory.ints.insert(memory.ints.begin(), int64_t(argument<Op>(op, needed, value, first)));
      return Arg::op_ints(memory.ints);
    }
  }
  wrong_argument(op, "of another kind", value);
}

nb::object python_of_arg(UOp n) {
  const ArgKind kind = info(n.op()).arg;
  switch (kind) {
    case ArgKind::None: return nb::none();
    case ArgKind::Const: return number_of_bits(n.dtype(), n.bits());
    case ArgKind::Int: return nb::int_(n.number());
    case ArgKind::Name:
      return owned(
          PyUnicode_DecodeUTF8(n.name().data(), Py_ssize_t(n.name().size()), "surrogateescape"));
    case ArgKind::Range: return nb::make_tuple(n.range_id(), n.axis());
    case ArgKind::Op: return nb::cast(n.arg_op());
    case ArgKind::MaybeOp: return n.arg_word() == 0 ? nb::none() : nb::cast(n.arg_op());
    case ArgKind::Space: return nb::cast(n.space());
    case ArgKind::Ints: return tuple_of_ints(n);
    case ArgKind::OpInts: return nb::make_tuple(n.arg_op(), tuple_of_ints(n));
  }
  return nb::none();
}

}  // namespace weft::python
