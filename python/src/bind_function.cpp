// Gradients that users give: weft/_function.py.
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>

#include "core.h"
#include "tensor.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

// Objects that were let go by threads without the interpreter's lock: others may wait, with it, for
// what such a thread holds.
class Dropped {
 public:
  void add(PyObject* object) {
    {
      const std::lock_guard lock(mutex_);
      objects_.push_back(object);
    }
    Py_AddPendingCall(
        [](void* self) {
          static_cast<Dropped*>(self)->free();
          return 0;
        },
        this);
  }

  // With the interpreter's lock.
  void free() {
    std::vector<PyObject*> objects;
    {
      const std::lock_guard lock(mutex_);
      objects.swap(objects_);
    }
    for (PyObject* object : objects) Py_DECREF(object);
  }

 private:
  std::mutex mutex_;
  std::vector<PyObject*> objects_;
};

Dropped& dropped() {
  static auto* const kDropped = new Dropped;
  return *kDropped;
}

std::shared_ptr<PyObject> shared(nb::handle object) {
  return {object.inc_ref().ptr(), [](PyObject* p) {
            if (Py_IsInitialized() == 0) return;
            if (PyGILState_Check() != 0) {
              Py_DECREF(p);
            } else {
              dropped().add(p);
            }
          }};
}

std::vector<std::optional<Tensor>> gradients_of(nb::handle list) {
  std::vector<std::optional<Tensor>> by;
  for (const nb::handle h : list) {
    const Tensor* t = h.is_none() ? nullptr : as_tensor(h);
    if (t == nullptr && !h.is_none()) no_operand("function", h);
    by.push_back(t != nullptr ? std::optional(*t) : std::nullopt);
  }
  return by;
}

nb::list with_gradient(nb::handle results, nb::handle inputs, nb::handle backward) {
  dropped().free();
  const std::shared_ptr<PyObject> held = shared(backward);
  const auto call = [held](const Tensor::BackwardCall& c) {
    const nb::gil_scoped_acquire acquire;
    const nb::object as_result = nb::cpp_function(c.as_result);
    return gradients_of(nb::handle(held.get())(tuple_of_tensors(c.gradients), as_result));
  };
  const auto tensors = [](nb::handle list) {
    std::vector<Tensor> found;
    for (const nb::handle h : list) found.push_back(*as_tensor(h));
    return found;
  };
  nb::list list;
  for (Tensor& t : Tensor::with_gradient(tensors(results), tensors(inputs), call)) {
    list.append(std::move(t));
  }
  return list;
}

}  // namespace

void bind_function(nb::module_& m) {
  m.def("with_gradient", with_gradient, nb::arg("results"), nb::arg("inputs"), nb::arg("backward"),
        nb::sig("def with_gradient(results: list[Tensor], inputs: list[Tensor], backward: "
                "collections.abc.Callable[[tuple[Tensor, ...], "
                "collections.abc.Callable[[Tensor, int], Tensor]], "
                "collections.abc.Sequence[Tensor | None]]) -> list[Tensor]"),
        "The results, with a gradient by the inputs that a function gives.");
}

}  // namespace weft::python
