// weft.torch._C: what weft/torch/__init__.py needs of the device.
#include <cstdint>

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

#include "accelerator.h"
#include "compiled_graph.h"
#include "counters.h"
#include "fallback.h"
#include "generator.h"
#include "interpreter.h"
#include "storage.h"
#include "weft/interrupt.h"

namespace nb = nanobind;

namespace nanobind::detail {

// PyTorch's tensors, as its own bindings pass them; one that is not defined is None.
template <>
struct type_caster<at::Tensor> {
  NB_TYPE_CASTER(at::Tensor, const_name("torch.Tensor"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (source.is_none()) return true;
    if (!THPVariable_Check(source.ptr())) return false;
    value = THPVariable_Unpack(source.ptr());
    return true;
  }
  static handle from_cpp(const at::Tensor& tensor, rv_policy, cleanup_list*) noexcept {
    return THPVariable_Wrap(tensor);
  }
};

}  // namespace nanobind::detail

namespace weft::pytorch {
namespace {

void realize_tensor(const at::Tensor& tensor) {
  if (tensor.device().is_privateuseone()) realize(tensor);
}

}  // namespace

WEFT_MODULE(_C, "weft.torch._C", weft_torch_module, m) {  // NOLINT
  python::hold_threads_that_python_ends();
  nb::class_<CompiledGraph>(m, "CompiledGraph")
      .def("__init__",
           [](CompiledGraph* self, const nb::callable& run) {
             new (self) CompiledGraph([run](const CompiledGraph::Tensors& inputs) {
               const python::InterpreterTaken gil;
               try {
                 return nb::cast<CompiledGraph::Tensors>(run(inputs));
               } catch (const nb::python_error& error) {
                 if (error.matches(PyExc_KeyboardInterrupt)) throw Interrupted();
                 throw;
               }
             });
           })
      .def("__call__", &CompiledGraph::operator(), nb::call_guard<python::InterpreterReleased>())
      .def_prop_ro("kernels", &CompiledGraph::kernels)
      .def_prop_ro("is_captured", &CompiledGraph::is_captured);
  m.def("native_counts", &native_counts);
  m.def("fallback_counts", &fallback_counts);
  m.def("reset_counts", &reset_counts);
  m.def("set_fallbacks", [](bool are_allowed) {
    set_fallbacks(are_allowed ? Fallbacks::kAllowed : Fallbacks::kForbidden);
  });
  m.def("set_fallback_warnings", &set_fallback_warnings);
  m.def("set_decomposer", [](const nb::callable& decomposer) {
    set_decomposer([decomposer] {
      const python::InterpreterTaken gil;
      decomposer();
    });
  });
  m.def("live_storages", &live_storages);
  m.def("is_pending", [](const at::Tensor& tensor) { return is_pending(tensor); });
  m.def("realize", &realize_tensor, nb::call_guard<python::InterpreterReleased>());
  m.def("realize_all", &realize_all, nb::call_guard<python::InterpreterReleased>());
  m.def("synchronize", &synchronize, nb::call_guard<python::InterpreterReleased>());
  m.def("yield_accelerator", &yield_accelerator);
  m.def("stop_being_accelerator", &stop_being_accelerator);
  m.def("default_generator",
        [] { return nb::steal(THPGenerator_initDefaultGenerator(default_generator())); });
}

}  // namespace weft::pytorch
