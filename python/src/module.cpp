// weft._core: the module, and small conversions that every part of it uses.
#include <cctype>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <nanobind/nanobind.h>

#include "core.h"
#include "interpreter.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "tensor.h"

namespace weft::python {

nb::tuple tuple_of(const std::shared_ptr<Arena>& arena, std::span<const UOp> nodes) {
  nb::object out = nb::steal(PyTuple_New(Py_ssize_t(nodes.size())));
  if (!out.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < nodes.size(); i++) {
    PyTuple_SET_ITEM(out.ptr(), Py_ssize_t(i), nb::cast(Graph{arena, nodes[i]}).release().ptr());
  }
  return nb::borrow<nb::tuple>(out);
}

nb::str text(std::string_view bytes) {
  nb::object out =
      nb::steal(PyUnicode_DecodeUTF8(bytes.data(), Py_ssize_t(bytes.size()), "replace"));
  if (!out.is_valid()) throw nb::python_error();
  return nb::borrow<nb::str>(out);
}

std::string upper(std::string_view name) {
  std::string out;
  for (const char c : name) out += char(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

void type_error(std::string_view message) { throw nb::type_error(std::string(message).c_str()); }

std::string_view type_text(nb::handle value) { return Py_TYPE(value.ptr())->tp_name; }

}  // namespace weft::python

WEFT_MODULE(_core, "weft._core", weft_core_module, m) {
  using namespace weft::python;
  // NumPy keeps Python's typing module alive past the end, which keeps weft's functions; what
  // counts is live_arenas().
  nb::set_leak_warnings(false);
  m.doc() = "The compiled part of weft. Use it through weft and weft.ir.";
  bind_errors();
  bind_signals();
  bind_types(m);
  bind_dtype(m);
  bind_default_dtypes(m);
  bind_arena(m);
  UOpClass uop(m, "UOp", R"(One immutable node of a graph: (op, dtype, sources, argument).

A UOp keeps the graph beneath it alive. Two UOps are equal when their graphs have the same
structure, wherever they were made; a UOp can be a key of a dict.

>>> r = UOp.range(4, 0)
>>> u = (r*8 + 3) // 4
>>> print(u)
(r0*8 + 3)//4
>>> u.op, u.dtype, u.src[1].arg
(Ops.IDIV, dtypes.index, 4)
>>> u == (UOp.range(4, 0)*8 + 3) // 4
True

Operators build nodes, but for == and !=, which compare structure: x.eq(y) and x.ne(y) build the
comparison. A number takes the dtype of the other operand. Operands of another arena are imported
into that of the left one.)");
  bind_node(m, uop);
  bind_definitions(uop);
  bind_operators(uop);
  bind_tensor_ops(uop);
  bind_memory_ops(uop);
  bind_walks(m, uop);
  bind_rules(m);
  bind_trace(m);
  bind_rewrite(m, uop);
  bind_evaluate(m, uop);
  bind_schedule(m);
  bind_device(m);
  bind_codegen(m);
  bind_passes(m);
  bind_pipeline(m);
  bind_explain(m);
  TensorClass tensor = bind_tensor(m);
  bind_tensor_creation(tensor);
  bind_tensor_elementwise(tensor);
  bind_tensor_functions(tensor);
  bind_tensor_activation(tensor);
  bind_tensor_order(tensor);
  bind_tensor_loss(tensor);
  bind_tensor_reduce(tensor);
  bind_tensor_movement(tensor);
  bind_tensor_index(tensor);
  bind_tensor_scatter(tensor);
  bind_tensor_shapes(tensor);
  bind_tensor_random(tensor);
  bind_tensor_products(tensor);
  bind_tensor_windows(tensor);
  bind_tensor_gradient(m, tensor);
  bind_tensor_values(m, tensor);
  bind_tensor_protocol(m, tensor);
  bind_dlpack(m, tensor);
  bind_jit(m);
  bind_recording(m);
  bind_function(m);
  bind_custom_kernel(m);
  bind_mapped_file(m);
}
