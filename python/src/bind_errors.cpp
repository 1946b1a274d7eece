// The errors of weft as the classes of weft.errors.
#include <exception>
#include <new>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/interrupt.h"
#include "core.h"
#include "rewrite/loop_error.h"
#include "runtime/mapped_file.h"

namespace weft::python {
namespace {

nb::object loop_error_of(const nb::module_& errors, const RewriteLoopError& e) {
  nb::object steps = errors.attr("LoopStep");
  nb::list list;
  for (const LoopStep& s : e.steps()) {
    list.append(steps(text(s.node), text(s.rule), text(s.file), s.line, text(s.change)));
  }
  const bool is_cycle = e.kind() == LoopKind::kCycle;
  return errors.attr("RewriteLoopError")(text(e.what()), is_cycle ? "cycle" : "growth",
                                         text(e.pass()), list, text(e.ends_in()));
}

// Sets the Python error; a failure on the way is the error instead.
template <class Make>
void raise(Make&& make) noexcept {
  try {
    const nb::module_ errors = nb::module_::import_("weft.errors");
    const nb::object error = make(errors);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  } catch (nb::python_error& failure) {
    failure.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
}

void raise_class(const char* name, const char* what) noexcept {
  raise([&](const nb::module_& errors) { return errors.attr(name)(text(what)); });
}
void raise_class(const char* name, const Error& e) noexcept { raise_class(name, e.what()); }

// What the program's handler of a signal has raised.
void raise_interrupted(const Interrupted& e) noexcept {
  auto* const raised = static_cast<PyObject*>(e.reason().get());
  if (raised == nullptr) return PyErr_SetNone(PyExc_KeyboardInterrupt);
  PyErr_Restore(nb::handle(raised).type().inc_ref().ptr(), nb::handle(raised).inc_ref().ptr(),
                PyException_GetTraceback(raised));
}

void translate(const std::exception_ptr& pointer, void*) {
  // No exception of C++: a daemon thread that Python ends comes by. To unwind it further would
  // abort the process.
  while (!pointer) pause();
  try {
    std::rethrow_exception(pointer);
  } catch (const Interrupted& e) {
    raise_interrupted(e);
  } catch (const RewriteLoopError& e) {
    raise([&](const nb::module_& errors) { return loop_error_of(errors, e); });
  } catch (const ShapeError& e) {
    raise_class("ShapeError", e);
  } catch (const DTypeError& e) {
    raise_class("DTypeError", e);
  } catch (const IndexError& e) {
    raise_class("IndexError", e);
  } catch (const DeviceError& e) {
    raise_class("DeviceError", e);
  } catch (const CompileError& e) {
    raise_class("CompileError", e);
  } catch (const JitError& e) {
    raise_class("JitError", e);
  } catch (const ParseError& e) {
    raise_class("ParseError", e);
  } catch (const SpecError& e) {
    raise_class("SpecError", e);
  } catch (const InternalError& e) {
    raise_class("InternalError", e);
  } catch (const MappedFileError& e) {
    raise_class("FileFormatError", e);
  } catch (const Error& e) {
    raise_class("Error", e);
  } catch (const std::bad_alloc&) {
    raise_class("OutOfMemoryError", "[weft] out of memory");
  }
}

}  // namespace

void bind_errors() { nb::register_exception_translator(translate); }

}  // namespace weft::python
