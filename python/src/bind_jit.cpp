// Captured calls: weft/_jit.py makes functions of them.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include "core.h"
#include "tensor.h"
#include "weft/jit.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

// Of a list of Tensors; each sees no more of its storage than it has to.
std::vector<Tensor> tensors_of(nb::handle list) {
  std::vector<Tensor> tensors;
  for (const nb::handle h : list) {
    Tensor* const t = as_tensor(h);
    if (t == nullptr) type_error(fmt::format("[jit] a Tensor is needed, not {}", type_text(h)));
    tensors.push_back(t->leave_rest());
  }
  return tensors;
}

nb::list list_of(std::span<const Tensor> tensors) {
  nb::list list;
  for (const Tensor& t : tensors) list.append(nb::cast(t));
  return list;
}

nb::object run(nb::handle inputs, nb::handle function, nb::handle collect) {
  const std::vector<Tensor> tensors = tensors_of(inputs);
  const auto call = [&](std::span<const Tensor> proxies) {
    const nb::gil_scoped_acquire acquire;
    return tensors_of(function(list_of(proxies)));
  };
  const auto collect_garbage = [&] {
    const nb::gil_scoped_acquire acquire;
    collect();
  };
  JitCapture::Result result;
  {
    const nb::gil_scoped_release release;
    result = JitCapture::run(tensors, call, collect_garbage);
  }
  nb::object capture = result.capture ? nb::cast(std::move(*result.capture)) : nb::none();
  return nb::make_tuple(capture, list_of(result.outputs));
}

nb::object replay(const JitCapture& capture, nb::handle inputs) {
  const std::vector<Tensor> tensors = tensors_of(inputs);
  std::optional<std::vector<Tensor>> outputs;
  {
    const nb::gil_scoped_release release;
    outputs = capture.replay(tensors);
  }
  return outputs ? nb::object(list_of(*outputs)) : nb::none();
}

// The same for handles that are the same view of the same storage.
nb::tuple identity(const Tensor& t) {
  return nb::make_tuple(reinterpret_cast<uintptr_t>(t.storage().get()), t.view().offset,
                        tuple_of_ints(t.view().strides), tuple_of_ints(t.shape()), t.dtype());
}

}  // namespace

void bind_jit(nb::module_& m) {
  nb::class_<JitCapture>(m, "JitCapture", "The kernels of one call of a function: weft.jit.")
      .def_static("run", run, nb::arg("inputs"), nb::arg("function"), nb::arg("collect"),
                  nb::sig("def run(inputs: list[Tensor], function: "
                          "collections.abc.Callable[[list[Tensor]], list[Tensor]], collect: "
                          "collections.abc.Callable[[], object]) -> tuple[JitCapture | None, "
                          "list[Tensor]]"),
                  "Calls the function; the capture, where there is something to replay, and the "
                  "outputs.")
      .def(
          "replay", replay, nb::arg("inputs"),
          nb::sig("def replay(self, inputs: list[Tensor]) -> list[Tensor] | None"),
          "The outputs for other inputs; None where they are not of the kind that was captured, or "
          "where the capture is spent.")
      .def_prop_ro("is_spent", &JitCapture::is_spent,
                   "A capture made now would have faster kernels, for its sizes alone.")
      .def_prop_ro("kernels", &JitCapture::kernels, "The number of kernels that a replay runs.");
  m.def("is_capturing", &is_capturing, "This thread captures a function.");
  m.def("tensor_identity", identity, nb::arg("tensor"),
        nb::sig("def tensor_identity(tensor: Tensor) -> tuple[object, ...]"),
        "Equal for handles that are the same view of the same storage.");
}

}  // namespace weft::python
