// What is kept between runs, and how kernels are made fast.
#include <string>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "base/config.h"
#include "core.h"
#include "interpreter.h"
#include "schedule/schedule_cache.h"
#include "weft/beam.h"

namespace weft::python {

void bind_schedule(nb::module_& m) {
  m.def("clear_schedule_cache", &clear_schedule_cache, nb::call_guard<InterpreterReleased>(),
        "Forgets every schedule: the next run of a program schedules it anew.");
  m.def(
      "set_package_path", [](std::string path) { config().package_path = std::move(path); },
      nb::arg("path"),
      "Where packages of Python lie, by colons: libraries of devices are in some.");
  m.def(
      "set_beam", &set_beam, nb::arg("width"),
      R"(Kernels that are compiled from now on get the optimisations that a beam search of this width
finds by running candidates; 0: those that rules of thumb say. Returns the width before; the
environment's WEFT_BEAM is the first. What was found is remembered on disk.

>>> import weft
>>> old = weft.set_beam(4)
>>> weft.set_beam(old)
4
)");
}

}  // namespace weft::python
