// The devices of the process.
#include <string>
#include <string_view>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "base/dynamic_library.h"
#include "core.h"
#include "interpreter.h"
#include "runtime/device.h"
#include "schedule/machine.h"
#include "weft/device.h"

namespace weft::python {

void bind_device(nb::module_& m) {
  m.def(
      "device_list",
      [] {
        nb::list out;
        for (const DeviceEntry& entry : device_list()) {
          out.append(
              nb::make_tuple(text(entry.name), text(entry.description), text(entry.missing)));
        }
        return out;
      },
      nb::sig("def device_list() -> list[tuple[str, str, str]]"));
  m.def(
      "add_library_folder", [](std::string folder) { add_library_folder(std::move(folder)); },
      nb::arg("folder"));
  m.def(
      "machine_text",
      [](std::string_view name) { return text_of(find_device(name).limits().machine); },
      nb::arg("name"));
  m.def(
      "missing_dtypes", [](std::string_view name) { return missing_dtypes(name); },
      nb::arg("name"));
  m.def("default_device", &default_device);
  m.def("set_default_device", &set_default_device, nb::arg("name"));
  m.def(
      "synchronize", [](std::string_view name) { synchronize(name); }, nb::arg("name"),
      nb::call_guard<InterpreterReleased>());
}

}  // namespace weft::python
