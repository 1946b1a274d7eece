// The interpreter and threads that outlive it, and the one time that a module of weft is loaded.
#pragma once

#include <cstdlib>
#include <exception>

#include <nanobind/nanobind.h>
#include <unistd.h>

namespace weft::python {

namespace nb = nanobind;

// Waits for the interpreter's lock. Once the interpreter has ended, Python ends the thread that
// asks for it by unwinding its stack, which no destructor lets pass: the process would be aborted.
// The thread stands still here instead, until the process ends.
template <class Take>
auto take_interpreter(Take&& take) {
  try {
    return take();
  } catch (...) {  // the stack is being unwound: `take` throws nothing
    for (;;) pause();
  }
}

// Other threads run Python meanwhile.
class InterpreterReleased {
 public:
  InterpreterReleased() : state_(PyEval_SaveThread()) {}
  InterpreterReleased(const InterpreterReleased&) = delete;
  InterpreterReleased& operator=(const InterpreterReleased&) = delete;
  ~InterpreterReleased() {
    take_interpreter([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* state_;
};

// This thread runs Python meanwhile.
class InterpreterTaken {
 public:
  InterpreterTaken() : state_(take_interpreter([] { return PyGILState_Ensure(); })) {}
  InterpreterTaken(const InterpreterTaken&) = delete;
  InterpreterTaken& operator=(const InterpreterTaken&) = delete;
  ~InterpreterTaken() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// The same for threads that come back through other people's code, as PyTorch's, which asks for the
// lock in destructors: what would abort the process holds the thread.
inline void hold_threads_that_python_ends() {
  static const std::terminate_handler kBefore = std::get_terminate();
  std::set_terminate([] {
    while (Py_IsInitialized() == 0 && !std::current_exception()) pause();  // it ends, or has
    kBefore();
    std::abort();
  });
}

// Called before a module is made. False, with an ImportError set, where it cannot be: its types are
// those of the process, and of the interpreter that loaded it first. `was_loaded` is the module's.
inline bool may_load(const char* name, bool& was_loaded) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_Format(PyExc_ImportError,
                 "[weft] %s works in the main interpreter alone; this is a subinterpreter", name);
    return false;
  }
  if (was_loaded) {
    PyErr_Format(PyExc_ImportError,
                 "[weft] %s was loaded before in this process, and cannot be loaded a second time: "
                 "leave weft's modules in sys.modules, or start a new process",
                 name);
    return false;
  }
  was_loaded = true;
  return true;
}

}  // namespace weft::python

// NB_MODULE for a module that is loaded once: `name` is that of its file, `body` one that is free.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define WEFT_MODULE(name, full_name, body, variable)                    \
  extern "C" PyObject* PyInit_##body();                                 \
  extern "C" NB_EXPORT PyObject* PyInit_##name();                       \
  extern "C" PyObject* PyInit_##name() {                                \
    static bool was_loaded = false;                                     \
    if (!weft::python::may_load(full_name, was_loaded)) return nullptr; \
    return PyInit_##body();                                             \
  }                                                                     \
  NB_MODULE(body, variable)
// NOLINTEND(bugprone-macro-parentheses)
