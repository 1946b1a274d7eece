// What Python frees: objects and memory of others that weft holds, let go by any thread.
#pragma once

#include <memory>

#include <nanobind/nanobind.h>

namespace weft::python {

// Calls free(what) with the interpreter's lock: now, where this thread has it, else soon. It never
// waits: others may wait, with that lock, for what this thread holds. Nothing happens once the
// interpreter is gone.
void let_go(void (*free)(void*), void* what);

// Does what is still to be done of that; with the interpreter's lock. Called where weft is about to
// hold more.
void finish_letting_go();

// An object of Python that any thread may let go.
std::shared_ptr<PyObject> shared(nanobind::handle object);

}  // namespace weft::python
