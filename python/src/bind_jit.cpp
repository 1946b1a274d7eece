// Captured calls: weft/_jit.py makes functions of them.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "core.h"
#include "interpreter.h"
#include "tensor.h"
#include "value/number_watch.h"
#include "weft/jit.h"
#include "weft/small_vector.h"
#include "weft/tensor.h"
#include "weft/variable.h"

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

// Of (name, min, max, value).
std::vector<VariableValue> variables_of(nb::handle list) {
  std::vector<VariableValue> values;
  for (const nb::handle h : list) {
    const nb::tuple parts = nb::cast<nb::tuple>(h);
    values.push_back(Variable(nb::cast<std::string>(parts[0]), nb::cast<int64_t>(parts[1]),
                              nb::cast<int64_t>(parts[2]))
                         .bind(nb::cast<int64_t>(parts[3])));
  }
  return values;
}

nb::object run(nb::handle inputs, nb::handle function, nb::handle collect, nb::handle variables) {
  const std::vector<Tensor> tensors = tensors_of(inputs);
  const std::vector<VariableValue> values = variables_of(variables);
  const auto call = [&](std::span<const Tensor> proxies) {
    const InterpreterTaken acquire;
    return tensors_of(function(list_of(proxies)));
  };
  const auto collect_garbage = [&] {
    const InterpreterTaken acquire;
    collect();
  };
  JitCapture::Result result;
  {
    const InterpreterReleased release;
    result = JitCapture::run(tensors, call, collect_garbage, values);
  }
  nb::object capture = result.capture ? nb::cast(std::move(*result.capture)) : nb::none();
  return nb::make_tuple(capture, list_of(result.outputs));
}

nb::object replay(const JitCapture& capture, nb::handle inputs, nb::handle values) {
  const std::vector<Tensor> tensors = tensors_of(inputs);
  SmallVector<int64_t, 4> numbers;
  for (const nb::handle h : values) numbers.push_back(nb::cast<int64_t>(h));
  std::optional<std::vector<Tensor>> outputs;
  {
    const InterpreterReleased release;
    outputs = capture.replay(tensors, {numbers.data(), numbers.size()});
  }
  return outputs ? nb::object(list_of(*outputs)) : nb::none();
}

nb::object merged(nb::handle captures) {
  std::vector<const JitCapture*> list;
  for (const nb::handle h : captures) list.push_back(nb::cast<const JitCapture*>(h));
  std::optional<JitCapture> made;
  {
    const InterpreterReleased release;
    made = JitCapture::merged(list);
  }
  return made ? nb::cast(*std::move(made)) : nb::none();
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
                  nb::arg("variables") = nb::tuple(),
                  nb::sig("def run(inputs: list[Tensor], function: "
                          "collections.abc.Callable[[list[Tensor]], list[Tensor]], collect: "
                          "collections.abc.Callable[[], object], variables: "
                          "collections.abc.Sequence[tuple[str, int, int, int]] = ()) -> "
                          "tuple[JitCapture | None, list[Tensor]]"),
                  "Calls the function; the capture, where there is something to replay, and the "
                  "outputs.")
      .def(
          "replay", replay, nb::arg("inputs"), nb::arg("values") = nb::tuple(),
          nb::sig("def replay(self, inputs: list[Tensor], values: "
                  "collections.abc.Sequence[int] = ()) -> list[Tensor] | None"),
          "The outputs for other inputs; None where they are not of the kind that was captured, or "
          "where the capture is spent.")
      .def_static("merged", merged, nb::arg("captures"),
                  nb::sig("def merged(captures: list[JitCapture]) -> JitCapture | None"),
                  "One capture for all values of the variables, of several with different values, "
                  "the newest last.")
      .def("replaces", &JitCapture::replaces, nb::arg("other"),
           "Serves all calls that the other one does.")
      .def_prop_ro("is_spent", &JitCapture::is_spent,
                   "A capture made now would have faster kernels, for its sizes alone.")
      .def_prop_ro("kernels", &JitCapture::kernels, "The number of kernels that a replay runs.");
  m.def("set_watched_int", set_watched_int, nb::arg("kind"),
        nb::sig("def set_watched_int(kind: type) -> None"),
        "The class of ints that say what is asked about them.");
  m.def("assume_at_most", &assume_at_most, nb::arg("a"), nb::arg("b"),
        "a <= b, and something is done because of it: a capture with variables is of such calls.");
  m.def(
      "assume_exact", [](int64_t number) { assume_exact({number}); }, nb::arg("number"),
      "Something is done that is right for this number alone.");
  m.def("is_capturing", &is_capturing, "This thread captures a function.");
  m.def("tensor_identity", identity, nb::arg("tensor"),
        nb::sig("def tensor_identity(tensor: Tensor) -> tuple[object, ...]"),
        "Equal for handles that are the same view of the same storage.");
}

}  // namespace weft::python
