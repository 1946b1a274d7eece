// Recorded runs of functions: weft/_check.py compares them.
#include <functional>
#include <new>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "base/ref.h"
#include "core.h"
#include "interpreter.h"
#include "ir/op.h"
#include "tensor/recording.h"
#include "value/storage.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

// The callable lives as long as the recording.
std::function<void()> caller_of(nb::handle callable) {
  return [callable] {
    const InterpreterTaken acquire;
    callable();
  };
}

nb::list operations(const Recording& recording) {
  nb::list list;
  for (const Recording::Operation& o : recording.operations()) {
    list.append(nb::make_tuple(text(name_of(o.op)), Recording::tensor_of_result(o.result)));
  }
  return list;
}

// What each holds now, and its gradient.
nb::list changed(const Recording& recording) {
  nb::list list;
  for (const Recording::Changed& c : recording.changed()) {
    nb::object gradient = nb::none();
    if (const Ref<Storage> collected = c.storage->gradient()) {
      gradient = nb::cast(Recording::tensor_of_result(collected->version()));
    }
    list.append(nb::make_tuple(Recording::tensor_of_result(c.storage->version()), gradient));
  }
  return list;
}

}  // namespace

void bind_recording(nb::module_& m) {
  nb::class_<Recording>(m, "Recording", "The operations of a run of a function: weft.check.")
      .def(
          "__init__",
          [](Recording* self, bool is_eager, nb::handle at_operation) {
            const auto mode = is_eager ? Recording::Mode::kEager : Recording::Mode::kKept;
            new (self) Recording(mode, caller_of(at_operation));
          },
          nb::arg("is_eager"), nb::arg("at_operation"), nb::keep_alive<1, 3>(),
          nb::sig("def __init__(self, is_eager: bool, at_operation: "
                  "collections.abc.Callable[[], None]) -> None"))
      .def("start", &Recording::start, "Records this thread until stop().")
      .def("stop", &Recording::stop, "The run is over.")
      .def("undo", &Recording::undo, "What was written holds what it did before.")
      .def("undo_in_own_memory", &Recording::undo_in_own_memory,
           "undo(), in memory that nothing else holds.")
      .def("operations", operations, nb::sig("def operations(self) -> list[tuple[str, Tensor]]"),
           "Their names and results.")
      .def("changed", changed, nb::sig("def changed(self) -> list[tuple[Tensor, Tensor | None]]"),
           "What the memory that was written holds now, and its gradient.");
  m.def("is_recording", is_recording, "This thread's operations are recorded and held.");
}

}  // namespace weft::python
