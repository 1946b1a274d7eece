// Errors of weft as PyTorch's.
#include "native.h"

#include <exception>

#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>

#include "base/error.h"
#include "base/interrupt.h"

namespace weft::pytorch {
namespace {

[[noreturn]] void throw_as_python(const weft::Interrupted& interrupted) {
  const pybind11::gil_scoped_acquire gil;
  auto* const raised = static_cast<PyObject*>(interrupted.reason().get());
  if (raised == nullptr) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  } else {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised)), raised);
  }
  python_error error;
  error.persist();
  throw error;
}

}  // namespace

void throw_as_torch() {
  try {
    throw;
  } catch (const weft::Interrupted& interrupted) {
    throw_as_python(interrupted);
  } catch (const python_error&) {
    throw;  // as PyTorch throws what a handler of a signal has raised
  } catch (const weft::IndexError& error) {
    TORCH_CHECK_INDEX(false, error.what());
  } catch (const weft::DTypeError& error) {
    TORCH_CHECK_TYPE(false, error.what());
  } catch (const weft::ShapeError& error) {
    TORCH_CHECK(false, error.what());
  } catch (const std::exception& error) {
    TORCH_CHECK(false, error.what());
  }
}

}  // namespace weft::pytorch
