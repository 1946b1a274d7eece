// Gradients that users give: weft/_function.py.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>

#include "core.h"
#include "interpreter.h"
#include "let_go.h"
#include "tensor.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

std::vector<std::optional<Tensor>> gradients_of(nb::handle list) {
  std::vector<std::optional<Tensor>> by;
  for (const nb::handle h : list) {
    const Tensor* t = h.is_none() ? nullptr : as_tensor(h);
    if (t == nullptr && !h.is_none()) no_operand("function", h);
    by.push_back(t != nullptr ? std::optional(*t) : std::nullopt);
  }
  return by;
}

nb::list with_gradient(nb::handle results, nb::handle inputs, nb::handle backward) {
  finish_letting_go();
  const std::shared_ptr<PyObject> held = shared(backward);
  const auto call = [held](const Tensor::BackwardCall& c) {
    const InterpreterTaken acquire;
    const nb::object as_result = nb::cpp_function(c.as_result);
    return gradients_of(nb::handle(held.get())(tuple_of_tensors(c.gradients), as_result));
  };
  const auto tensors = [](nb::handle list) {
    std::vector<Tensor> found;
    for (const nb::handle h : list) found.push_back(*as_tensor(h));
    return found;
  };
  nb::list list;
  for (Tensor& t : Tensor::with_gradient(tensors(results), tensors(inputs), call)) {
    list.append(std::move(t));
  }
  return list;
}

}  // namespace

void bind_function(nb::module_& m) {
  m.def("with_gradient", with_gradient, nb::arg("results"), nb::arg("inputs"), nb::arg("backward"),
        nb::sig("def with_gradient(results: list[Tensor], inputs: list[Tensor], backward: "
                "collections.abc.Callable[[tuple[Tensor, ...], "
                "collections.abc.Callable[[Tensor, int], Tensor]], "
                "collections.abc.Sequence[Tensor | None]]) -> list[Tensor]"),
        "The results, with a gradient by the inputs that a function gives.");
}

}  // namespace weft::python
