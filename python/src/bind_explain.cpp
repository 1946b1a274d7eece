// Lines of Python that Values come from, and what was decided about them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include "base/config.h"
#include "core.h"
#include "engine/explain.h"
#include "engine/measure.h"
#include "interpreter.h"
#include "ir/arena.h"
#include "ir/origins.h"
#include "rewrite/trace_graph.h"
#include "runtime/cpu/llvm_library.h"
#include "runtime/device.h"
#include "trace.h"
#include "value/sites.h"
#include "value/storage.h"
#include "weft/tensor.h"
#include "weft/view.h"

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
      .def("explanations", &explanations, nb::call_guard<InterpreterReleased>(),
           "What was kept, as JSON: src/engine/explain.h says what it has.")
      .def(
          "trace_graph",
          [](const PythonTrace& t) {
            return trace_graph(t.trace, {.status = status_of_rule})
                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
          },
          nb::arg("trace"), "Passes with every node once, as JSON: src/rewrite/trace_graph.h.")
      .def(
          "assembly",
          [](std::string_view ir, std::string_view name) { return assembly_llvm(ir, name); },
          nb::arg("ir"), nb::arg("name"), nb::call_guard<InterpreterReleased>(),
          "What LLVM makes of a kernel for this machine, as text.")
      .def(
          "measure",
          [](const Graph& graph, std::string_view device, size_t repeats) {
            const InterpreterReleased released;
            const Measured measured = measure_graph(graph.root, find_device(device), repeats);
            std::vector<std::pair<std::string, uint64_t>> kernels;
            kernels.reserve(measured.kernels.size());
            for (const Measured::Kernel& k : measured.kernels)
              kernels.emplace_back(k.name, k.nanoseconds);
            return std::tuple(measured.nanoseconds, measured.compile_nanoseconds,
                              std::move(kernels));
          },
          nb::arg("graph"), nb::arg("device"), nb::arg("repeats"),
          "Nanoseconds of a tensor graph on memory of its own, to compile it, and of its kernels.")
      .def(
          "view_of",
          [](const Tensor& x) {
            const View& view = x.view();
            return std::tuple(std::vector<int64_t>(view.shape.begin(), view.shape.end()),
                              std::vector<int64_t>(view.strides.begin(), view.strides.end()),
                              view.offset, x.storage()->numel());
          },
          nb::arg("tensor"),
          "How a tensor sees its storage: shape, strides, offset, and elements of the storage.")
      .def(
          "cache_folder", [] { return config().cache_dir; },
          "Where kernels and schedules are kept; empty: nowhere.")
      .def("most_cache_bytes", [] { return config().most_cache_bytes; });
}

}  // namespace weft::python
