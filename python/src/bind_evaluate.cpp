// The reference evaluator on arrays of bits; weft/_arrays.py makes them NumPy's.
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "core.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "rules.h"

namespace weft::python {
namespace {

// dtype, shape, and the canonical bits of every lane as bytes of uint64.
using ArrayData = std::tuple<DType, std::vector<int64_t>, nb::bytes>;

Array array_of(const ArrayData& data) {
  const auto& [dtype, shape, bytes] = data;
  std::vector<uint64_t> bits(bytes.size() / sizeof(uint64_t));
  if (!bits.empty()) std::memcpy(bits.data(), bytes.c_str(), bits.size() * sizeof(uint64_t));
  return Array::of_bits(dtype, shape, std::move(bits));
}

ArrayData data_of(const Array& a) {
  return {
      a.dtype, a.shape,
      nb::bytes(reinterpret_cast<const char*>(a.data.data()), a.data.size() * sizeof(uint64_t))};
}

nb::tuple evaluate_bits(const Graph& g, const std::map<int64_t, ArrayData>& buffers,
                        std::map<std::string, int64_t> variables) {
  LegalNodes().require(g.root);
  Bindings bindings{.buffers = {}, .variables = std::move(variables)};
  for (const auto& [id, data] : buffers) bindings.buffers.emplace(id, array_of(data));
  nb::list results;
  for (const Array& a : evaluate(g.root, bindings)) results.append(data_of(a));
  nb::dict after;
  for (const auto& [id, array] : bindings.buffers) after[nb::int_(id)] = data_of(array);
  return nb::make_tuple(results, after);
}

}  // namespace

void bind_evaluate(nb::module_& m, UOpClass& c) {
  m.def("evaluate_bits", evaluate_bits, nb::arg("root"), nb::arg("buffers"), nb::arg("variables"),
        nb::sig("def evaluate_bits(root: UOp, buffers: dict[int, tuple[DType, list[int], bytes]], "
                "variables: dict[str, int]) -> tuple[list[tuple[DType, list[int], bytes]], "
                "dict[int, tuple[DType, list[int], bytes]]]"),
        "Runs the reference evaluator; an array is its dtype, its shape, and a uint64 per lane.");
  c.def(
      "evaluate",
      [](nb::object self, nb::object buffers, nb::object variables) -> nb::object {
        return nb::module_::import_("weft._arrays").attr("evaluate")(self, buffers, variables);
      },
      nb::arg("buffers") = nb::none(), nb::arg("variables") = nb::none(),
      nb::sig("def evaluate(self, buffers: dict[int, typing.Any] | None = None, "
              "variables: collections.abc.Mapping[str, int] | None = None) -> typing.Any"),
      R"(What the graph computes, by the reference evaluator: slow, one element at a time.

`buffers` gives BUFFERs and DEFINE_GLOBALs their memory by id, as NumPy arrays; a kernel writes into
them, and adds those that are missing. The result is a NumPy array; of a SINK, a tuple with one for
every source; None for an effect.

>>> import numpy
>>> t = UOp.buffer(dtypes.int32, 6, "CPU", 0).reshape(2, 3).reduce_axis(Ops.ADD, 1)
>>> t.evaluate({0: numpy.arange(6, dtype=numpy.int32)})
array([[ 3],
       [12]], dtype=int32)
>>> r, out = UOp.range(3, 0), UOp.define_global(dtypes.int32, 3, 1)
>>> memory = {}
>>> out.index(r).assign((r * r).cast(dtypes.int32)).end(r).evaluate(memory)
>>> memory[1]
array([0, 1, 4], dtype=int32)
)");
}

}  // namespace weft::python
