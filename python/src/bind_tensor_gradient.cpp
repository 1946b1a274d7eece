// Tensor's gradients.
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include "tensor.h"
#include "value/storage.h"
#include "weft/gradient.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

// True, False, or None where nothing was said.
std::optional<bool> required_of(const Tensor& t) {
  if (t.requires_grad()) return true;
  const bool may_be = t.dtype().is_float() && !t.is_detached() && !t.storage()->is_excluded();
  return may_be ? std::nullopt : std::optional(false);
}

nb::list gradient(const Tensor& x, const nb::args& targets, const std::optional<Tensor>& weights) {
  std::vector<Tensor> by;
  for (const nb::handle target : targets) {
    const Tensor* tensor = as_tensor(target);
    if (tensor == nullptr) no_operand("gradient", target);
    by.push_back(*tensor);
  }
  nb::list results;
  for (Tensor& result : x.gradient(by, weights)) results.append(std::move(result));
  return results;
}

}  // namespace

Tensor made(Tensor tensor, std::optional<bool> requires_grad) {
  if (requires_grad) {
    tensor.set_requires_grad(*requires_grad);
  } else if (tensor.dtype().is_float()) {
    tensor.storage()->list_as_unsaid();
  }
  return tensor;
}

void bind_tensor_gradient(nb::module_& m, TensorClass& c) {
  // Kept for the time of a `with`: threads and generators each restore what they found.
  m.def("gradients_are_on", gradients_are_on,
        "Whether operations of this thread are differentiated.");
  m.def("set_gradients", set_gradients, nb::arg("on"),
        "Switches gradients of this thread on or off.");

  c.def_prop_rw(
       "requires_grad", required_of,
       [](Tensor& t, std::optional<bool> required) {
         if (required) t.set_requires_grad(*required);
       },
       nb::for_setter(nb::arg("required").none()),
       nb::for_getter(nb::sig("def requires_grad(self) -> bool | None")),
       nb::for_setter(nb::sig("def requires_grad(self, required: bool | None, /) -> None")),
       R"(Whether backward() collects gradients for it: asked for, or computed from such tensors.

None where nothing is said: an optimiser asks for the gradients of such a tensor, and backward()
collects for those that were made of data when nothing that its result was computed from is True.

>>> w = Tensor([1.0, 2.0], requires_grad=True)
>>> (w * 2).requires_grad, w.detach().requires_grad, Tensor([1.0]).requires_grad
(True, False, None)
)")
      .def_prop_ro(
          "is_leaf", &Tensor::is_leaf,
          "Whether gradients end here: it was not computed from tensors that require them.")
      .def(
          "requires_grad_",
          [](nb::handle_t<Tensor> self, std::optional<bool> required) {
            if (required) nb::cast<Tensor&>(self).set_requires_grad(*required);
            return nb::borrow(self);
          },
          nb::arg("requires_grad").none() = true,
          nb::sig("def requires_grad_(self, requires_grad: bool | None = True) -> Tensor"),
          "Sets requires_grad, and gives the tensor itself.")
      .def_prop_rw(
          "grad", &Tensor::grad,
          [](Tensor& t, const std::optional<Tensor>& grad) { t.set_grad(grad); },
          nb::for_setter(nb::arg("grad").none()),
          nb::for_getter(nb::sig("def grad(self) -> Tensor | None")),
          nb::for_setter(nb::sig("def grad(self, grad: Tensor | None, /) -> None")),
          "What backward() collected, None before it. Set it to None to begin anew.")
      .def(
          "backward",
          [](nb::handle_t<Tensor> self, const std::optional<Tensor>& weights) {
            nb::cast<const Tensor&>(self).backward(weights);
            return nb::borrow(self);
          },
          nb::arg("gradient") = nb::none(),
          nb::sig("def backward(self, gradient: Tensor | None = None) -> Tensor"),
          R"(Adds the gradient of this to `grad` of all tensors that require one and that it was made from.

Each use counts with the values that it read, whatever was written since.

>>> w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> y = w * w
>>> y[0] = 10.0
>>> _ = y.sum().backward()
>>> w.grad.tolist()
[0.0, 4.0, 6.0]
)")
      .def("gradient", gradient, nb::arg("targets"), nb::kw_only(),
           nb::arg("gradient") = nb::none(),
           nb::sig("def gradient(self, *targets: Tensor, gradient: Tensor | None = None) -> "
                   "list[Tensor]"),
           R"(The gradient of this by each of the targets; it can be differentiated again.

A target that does not require gradients counts as it is now, wherever it was used, and has to be
asked for before the values in between are.

>>> x = Tensor([1.0, 2.0], requires_grad=True)
>>> (by_x,) = (x * x * x).sum().gradient(x)
>>> by_x.tolist(), by_x.sum().gradient(x)[0].tolist()
([3.0, 12.0], [6.0, 12.0])
)")
      .def("contiguous_backward", &Tensor::contiguous_backward,
           "The same values; their gradient is put in memory of its own.");
}

}  // namespace weft::python
