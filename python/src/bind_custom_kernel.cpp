// Kernels that users write: weft/_custom_kernel.py.
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "core.h"
#include "ir/arena.h"
#include "tensor.h"
#include "tensor/custom_kernel.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::python {
namespace {

nb::list call(const Graph& ast, const std::string& name, nb::handle outputs, nb::handle inputs,
              const std::string& device) {
  std::vector<CustomOutput> made;
  for (const nb::handle output : outputs) {
    made.push_back({Sizes(*axes_of(output[0], "custom_kernel")), dtype_of(output[1])});
  }
  std::vector<Tensor> read;
  for (const nb::handle input : inputs) read.push_back(*as_tensor(input));
  nb::list list;
  for (const Tensor& t : custom_kernel(ast, name, made, read, device)) list.append(nb::cast(t));
  return list;
}

}  // namespace

void bind_custom_kernel(nb::module_& m) {
  m.def("call_custom_kernel", call, nb::arg("ast"), nb::arg("name"), nb::arg("outputs"),
        nb::arg("inputs"), nb::arg("device"),
        nb::sig("def call_custom_kernel(ast: UOp, name: str, outputs: list[tuple[tuple[int, ...], "
                "DType]], inputs: list[Tensor], device: str) -> list[Tensor]"),
        "Tensors that a kernel writes when they are asked for.");
}

}  // namespace weft::python
