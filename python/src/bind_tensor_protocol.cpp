// What Python's own protocols ask of a tensor: buffers, numbers, copies, text; and its graph.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/ref.h"
#include "core.h"
#include "engine/realize.h"
#include "host_memory.h"
#include "interpreter.h"
#include "ir/arena.h"
#include "tensor.h"
#include "tensor/operand.h"
#include "value/storage.h"
#include "value/view.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::python {
namespace {

nb::module_ protocols() { return nb::module_::import_("weft._protocols"); }

// ---------------------------------------------------------------------------------------- buffers

struct FormatCode {
  DType dtype;
  const char* code;  // as module struct has it
};
constexpr FormatCode kFormats[] = {
    {dtypes::bool_, "?"},  {dtypes::int8, "b"},    {dtypes::int16, "h"},   {dtypes::int32, "i"},
    {dtypes::int64, "q"},  {dtypes::uint8, "B"},   {dtypes::uint16, "H"},  {dtypes::uint32, "I"},
    {dtypes::uint64, "Q"}, {dtypes::float16, "e"}, {dtypes::float32, "f"}, {dtypes::float64, "d"},
};

// What a Py_buffer points to.
struct Exported {
  HostMemory memory;
  std::vector<Py_ssize_t> shape, strides;
};

std::unique_ptr<Exported> exported(const Tensor& x, int flags) {
  const bool takes_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  const int orders = PyBUF_C_CONTIGUOUS | PyBUF_F_CONTIGUOUS | PyBUF_ANY_CONTIGUOUS;
  const bool takes_any = takes_strides && (flags & orders & ~PyBUF_STRIDES) == 0;
  const bool wants_f = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && x.ndim() > 1;
  if (wants_f) throw nb::buffer_error("[buffer] elements are given in row-major order");
  auto made = std::make_unique<Exported>();
  made->memory = host_memory_of(takes_any ? x : x.contiguous(), HostMemory::kShared);
  const View& view = made->memory.view;
  const auto width = Py_ssize_t(x.dtype().item_bytes());
  made->shape.assign(view.shape.begin(), view.shape.end());
  for (const int64_t stride : view.strides) made->strides.push_back(stride * width);
  return made;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    const Tensor& x = *as_tensor(self);
    const auto* const format = std::find_if(std::begin(kFormats), std::end(kFormats),
                                            [&](const auto& f) { return f.dtype == x.dtype(); });
    if (format == std::end(kFormats)) {
      throw nb::buffer_error(
          fmt::format("[buffer] buffers have no elements of {}", x.dtype().name()).c_str());
    }
    if ((flags & PyBUF_WRITABLE) != 0) {
      throw nb::buffer_error("[buffer] the values of a tensor cannot be written: assign to it");
    }
    std::unique_ptr<Exported> made = exported(x, flags);
    const auto width = Py_ssize_t(x.dtype().item_bytes());
    view->buf = made->memory.first + made->memory.view.offset * width;
    view->len = Py_ssize_t(x.numel()) * width;
    view->itemsize = width;
    view->readonly = 1;
    view->ndim = int(x.ndim());
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format->code) : nullptr;
    view->shape = (flags & PyBUF_ND) != 0 ? made->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? made->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = made.release();
    view->obj = Py_NewRef(self);
    return 0;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_BufferError, e.what());
  }
  return -1;
}

void release_buffer(PyObject*, Py_buffer* view) noexcept {
  delete static_cast<Exported*>(view->internal);
}

nb::object data(nb::handle self) {
  const nb::object contiguous = nb::cast(nb::cast<const Tensor&>(self).contiguous());
  return nb::steal(PyMemoryView_FromObject(contiguous.ptr()));
}

// ----------------------------------------------------------------------------------------- memory

// A handle on all elements of the storage, in their order; it is not detached.
Tensor whole_memory(const Tensor& x) {
  const int64_t sizes[] = {x.storage()->numel()};
  return {x.storage(), contiguous_view(x.storage()->dtype(), std::span<const int64_t>(sizes))};
}

Tensor from_bytes(nb::handle buffer, DType dtype, const std::vector<int64_t>& shape,
                  const std::string& device) {
  Py_buffer view;
  if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> released(&view, PyBuffer_Release);
  const int64_t bytes = checked_numel("tensor", shape) * dtype.item_bytes();
  if (bytes != view.len) {
    throw ShapeError(fmt::format("[tensor] {} of {} is {} bytes, not {}", text_of_shape(shape),
                                 dtype.name(), bytes, view.len));
  }
  return Tensor::from_bytes({static_cast<const std::byte*>(view.buf), size_t(view.len)}, shape,
                            dtype, device);
}

// ---------------------------------------------------------------------------------- numbers, text

nb::object index_of(nb::handle self) {
  const Tensor& x = *as_tensor(self);
  if (x.numel() != 1 || x.dtype().is_float()) {
    type_error(fmt::format("[index] one integer can be an index, not {} of {}",
                           text_of_shape(x.shape()), x.dtype().name()));
  }
  return nb::int_(self.attr("item")());
}

nb::object format(nb::handle self, const nb::str& spec) {
  if (as_tensor(self)->ndim() == 0) return self.attr("item")().attr("__format__")(spec);
  if (nb::len(spec) == 0) return nb::str(self);
  type_error(fmt::format("[format] '{}' is for numbers; this is a tensor of shape {}", spec.c_str(),
                         text_of_shape(as_tensor(self)->shape())));
}

bool contains(const Tensor& x, nb::handle value) {
  const Tensor found =
      of_operand(x, "in", value, [&](const auto& y) { return x.eq(y); }).any().snapshot();
  const InterpreterReleased release;
  return found.item<bool>();
}

// ------------------------------------------------------------------------------------------ graph

Graph graph(const Tensor& x) {
  const Tensor seen = tensor_of(read(x.snapshot()));
  std::optional<Graph> made;
  {
    const InterpreterReleased release;
    made = graph_to_realize(*seen.storage());
  }
  const std::shared_ptr<Arena> arena = current_arena();
  return {arena, import_into(*arena, *made)};
}

PyType_Slot slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
    {0, nullptr},
};

}  // namespace

PyType_Slot* tensor_slots() { return slots; }

void bind_tensor_protocol(nb::module_& m, TensorClass& c) {
  m.def("whole_memory", whole_memory, nb::arg("tensor"), "All elements of the memory of a tensor.");
  m.def(
      "memory_owners", [](const Tensor& x) { return x.storage()->owners(); }, nb::arg("tensor"),
      "How many handles there are on the memory of a tensor, and what else holds it.");
  m.def("from_bytes", from_bytes, nb::arg("data"), nb::arg("dtype"), nb::arg("shape"),
        nb::arg("device"),
        nb::sig("def from_bytes(data: typing.Any, dtype: DType, shape: "
                "collections.abc.Sequence[int], device: str) -> Tensor"),
        "A tensor of a copy of bytes.");
  c.def("__copy__", [](const Tensor& x) { return x; })
      .def(
          "__deepcopy__",
          [](nb::handle self, nb::handle memo) { return protocols().attr("deepcopy")(self, memo); },
          nb::arg("memo"), nb::sig("def __deepcopy__(self, memo: dict[int, typing.Any]) -> Tensor"))
      .def(
          "__reduce_ex__",
          [](nb::handle self, int protocol) { return protocols().attr("reduce")(self, protocol); },
          nb::arg("protocol"),
          nb::sig(
              "def __reduce_ex__(self, protocol: typing.SupportsIndex) -> tuple[typing.Any, ...]"))
      .def("__contains__", contains, nb::arg("value"),
           nb::sig("def __contains__(self, value: " WEFT_OPERAND ") -> bool"))
      .def("__index__", index_of, nb::sig("def __index__(self) -> int"))
      .def("__format__", format, nb::arg("spec"), nb::sig("def __format__(self, spec: str) -> str"))
      .def(
          "data", data, nb::sig("def data(self) -> memoryview"),
          R"(The values in row-major order, in memory that cannot be written and that no later write changes.

>>> Tensor([[1, 2], [3, 4]]).T.data().tolist()
[[1, 3], [2, 4]]
)")
      .def(
          "__array_namespace__",
          [](const Tensor&, nb::handle api_version) {
            return nb::module_::import_("weft.array_api").attr("_of_version")(api_version);
          },
          nb::kw_only(), nb::arg("api_version") = nb::none(),
          nb::sig("def __array_namespace__(self, *, api_version: str | None = None) -> typing.Any"))
      .def_prop_ro(
          "mT", [](const Tensor& x) { return x.transpose(-1, -2); },
          "The last two axes exchanged: a view.")
      .def(
          "to_device",
          [](const Tensor& x, const std::string& device, nb::handle) { return x.to(device); },
          nb::arg("device"), nb::kw_only(), nb::arg("stream") = nb::none(),
          nb::sig("def to_device(self, device: str, *, stream: typing.Any = None) -> Tensor"),
          "to(device), as the array API names it.")
      .def_prop_ro("uop", graph,
                   R"(The graph of its values now, as realize() would schedule it; nothing runs.

>>> a = Tensor([1, 2]).realize()
>>> print((a * 2 + 1).uop)
contiguous(buf0*2 + 1)
)");
}

}  // namespace weft::python
