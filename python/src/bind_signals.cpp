// Signals that Python handles end calls of weft's. Python's own handler of the system only notes a
// signal; what a program wants done runs later, between two steps of the interpreter, and so not
// while weft computes. Here a handler goes before Python's, which asks weft to stop; once it has
// let go of its locks, what the program wants done runs, and may raise.

#include <nanobind/nanobind.h>
#include <pthread.h>
#include <signal.h>

#include "base/interrupt.h"
#include "core.h"
#include "let_go.h"

namespace weft::python {
namespace {

using Handler = void (*)(int);

constexpr int kSignals = 32;  // those of POSIX; none that real-time programs number themselves

unsigned long main_thread = 0;        // the one that Python runs handlers on
Handler handler_of_python = nullptr;  // of all signals that Python handles

void note_signal(int number) {
  request_interrupt();
  handler_of_python(number);
}

// Whether the system calls Python for this signal, and not us before.
bool is_pythons(int number, struct sigaction& action) {
  return sigaction(number, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
         action.sa_handler == handler_of_python;
}

// Goes before Python where the program has set handlers. A signal may have come before this did.
void refresh() noexcept {
  struct sigaction action{};
  for (int number = 1; number < kSignals; number++) {
    if (!is_pythons(number, action)) continue;
    action.sa_handler = &note_signal;
    if (sigaction(number, &action, nullptr) == 0) request_interrupt();
  }
}

// What was raised, which is not any more.
nb::object take_raised() {
#if PY_VERSION_HEX >= 0x030c0000
  return nb::steal(PyErr_GetRaisedException());
#else
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return nb::steal(value);
#endif
}

void ask() {
  if (Py_IsInitialized() == 0) return;
  const nb::gil_scoped_acquire gil;
  if (PyErr_Occurred() != nullptr || PyErr_CheckSignals() == 0) return;
  throw Interrupted(shared(take_raised()));
}

bool serves_thread() noexcept { return PyThread_get_thread_ident() == main_thread; }

Handler handler_of(int number) {
  struct sigaction action{};
  const bool is_known =
      sigaction(number, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0;
  return is_known && action.sa_handler != SIG_IGN ? action.sa_handler : SIG_DFL;
}

// Python's handler is the same function for all signals, and has no name outside of Python. It is
// there where a signal has a handler; where none has, one that nobody misses is given one.
Handler find_handler_of_python(const nb::module_& signals) {
  for (int number = 1; number < kSignals; number++) {
    const Handler found = handler_of(number);
    if (found == SIG_DFL) continue;
    if (PyCallable_Check(signals.attr("getsignal")(number).ptr()) != 0) return found;
  }
  const nb::object before = signals.attr("getsignal")(SIGURG);
  if (!serves_thread() || before.is_none()) return nullptr;
  signals.attr("signal")(SIGURG, signals.attr("default_int_handler"));
  const Handler found = handler_of(SIGURG);
  signals.attr("signal")(SIGURG, before);
  return found;
}

}  // namespace

void bind_signals() {
  const nb::module_ threads = nb::module_::import_("threading");
  main_thread = nb::cast<unsigned long>(threads.attr("main_thread")().attr("ident"));
  pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });
  handler_of_python = find_handler_of_python(nb::module_::import_("signal"));
  if (handler_of_python == nullptr) return;
  set_interrupt_front({.serves_thread = &serves_thread, .refresh = &refresh, .ask = &ask});
  refresh();
}

}  // namespace weft::python
