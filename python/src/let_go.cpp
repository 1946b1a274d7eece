// A list of what is to be freed, beside the interpreter's own, which is short and may be full.
#include "let_go.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

namespace weft::python {
namespace {

class Dropped {
 public:
  void add(void (*free)(void*), void* what) {
    {
      const std::lock_guard lock(mutex_);
      list_.emplace_back(free, what);
    }
    // Where there is no room the next one asks again, or finish_letting_go() is called before.
    Py_AddPendingCall(
        [](void* self) {
          static_cast<Dropped*>(self)->finish();
          return 0;
        },
        this);
  }

  void finish() {
    std::vector<std::pair<void (*)(void*), void*>> list;
    {
      const std::lock_guard lock(mutex_);
      list.swap(list_);
    }
    for (const auto& [free, what] : list) free(what);
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<void (*)(void*), void*>> list_;
};

Dropped& dropped() {
  static auto* const kDropped = new Dropped;
  return *kDropped;
}

}  // namespace

void let_go(void (*free)(void*), void* what) {
  if (Py_IsInitialized() == 0) return;
  if (PyGILState_Check() != 0) {
    free(what);
  } else {
    dropped().add(free, what);
  }
}

void finish_letting_go() { dropped().finish(); }

std::shared_ptr<PyObject> shared(nanobind::handle object) {
  return {object.inc_ref().ptr(), [](PyObject* p) {
            let_go([](void* what) { Py_DECREF(static_cast<PyObject*>(what)); }, p);
          }};
}

}  // namespace weft::python
