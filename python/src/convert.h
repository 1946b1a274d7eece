// Between Python values and the arguments, constants and sizes of nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "core.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"

namespace weft::python {

// ---- numbers

// Whether a value stands for a constant: bool, int, float, and what NumPy calls a scalar.
bool is_number(nb::handle value);

// The bits of a number in a dtype. Throws DTypeError when it does not fit: integers are exact,
// floats round but finite ones stay finite, a float is never an integer.
uint64_t bits_of_number(DType type, nb::handle value);

// bool, int or float, exact.
nb::object number_of_bits(DType type, uint64_t bits);

// ---- operands

// The UOp of a handle; throws TypeError that names `what`.
const Graph& graph_of(nb::handle value, std::string_view what);

// A node of `arena`: a UOp, imported, or a number in the dtype `like`.
UOp operand_of(Arena& arena, DType like, nb::handle value);

// UOps and numbers; `like` is the dtype of the numbers.
std::vector<UOp> operands_of(Arena& arena, DType like, nb::handle sequence);
// UOps alone.
std::vector<UOp> nodes_of(Arena& arena, nb::handle sequence, std::string_view what);

// The arena of a UOp, or of the first UOp in a tuple or list; else the current one.
std::shared_ptr<Arena> arena_of(nb::handle values);

// ---- sizes

// An int or a UOp of dtype index.
Dim dim_of(Arena& arena, nb::handle value);
std::vector<Dim> dims_of(Arena& arena, nb::handle sequence);
std::vector<std::pair<Dim, Dim>> dim_pairs_of(Arena& arena, nb::handle sequence);

// f(a, b) and f((a, b)) are the same: the sequence that an *args stands for.
nb::object spread(const nb::args& args);

std::vector<int64_t> ints_of(nb::handle sequence);

// The id of a RANGE, which has 56 bits.
int64_t checked_range_id(int64_t id);

// ---- arguments

// What Arg borrows from.
struct ArgMemory {
  std::string name;
  std::vector<int64_t> ints;
};
Arg arg_of_python(Op op, DType dtype, nb::handle value, ArgMemory& memory);
nb::object python_of_arg(UOp n);

}  // namespace weft::python
