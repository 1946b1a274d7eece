// Lines of Python that Values come from, and what was decided about them.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "base/config.h"
#include "core.h"
#include "engine/explain.h"
#include "ir/origins.h"
#include "value/sites.h"

namespace weft::python {
namespace {

// Where the package lies: its own frames are not the user's.
std::string& package_folder() {
  static auto& folder = *new std::string;
  return folder;
}

// The innermost frame of this thread that is not of the package. The interpreter is held, or there
// is none.
uint32_t line_of_user() {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) return 0;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  uint32_t site = 0;
  while (frame != nullptr) {
    const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const nb::object name = code.attr("co_filename");
    const char* const file = PyUnicode_AsUTF8(name.ptr());
    if (file == nullptr) PyErr_Clear();
    const std::string_view text = file == nullptr ? "" : file;
    if (!package_folder().empty() && !text.starts_with(package_folder())) {
      site = site_number(text, PyFrame_GetLineNumber(frame));
      Py_DECREF(frame);
      return site;
    }
    PyFrameObject* const outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  return site;
}

}  // namespace

void bind_explain(nb::module_& m) {
  m.def(
       "set_package_folder",
       [](std::string folder) {
         package_folder() = std::move(folder);
         if (config().debug >= 2) note_sites(line_of_user);
       },
       nb::arg("folder"), "Frames of files in this folder are not the user's.")
      .def(
          "set_explaining",
          [](bool is_on) {
            set_explaining(is_on);
            note_sites(is_on || config().debug >= 2 ? line_of_user : nullptr);
          },
          nb::arg("is_on"), "Whether lines, decisions and runs are kept, for explanations().")
      .def("explanations", &explanations, "What was kept, as JSON.")
      .def(
          "cache_folder", [] { return config().cache_dir; },
          "Where kernels and schedules are kept; empty: nowhere.")
      .def("most_cache_bytes", [] { return config().most_cache_bytes; });
}

}  // namespace weft::python
