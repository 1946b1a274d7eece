// DLPack: tensors to and from other libraries.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "base/ref.h"
#include "core.h"
#include "dlpack.h"
#include "engine/foreign_memory.h"
#include "engine/realize.h"
#include "host_memory.h"
#include "let_go.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "tensor.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/view.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::python {

HostMemory host_memory_of(const Tensor& x, HostMemory::Copy copy) {
  const Tensor mine = x.snapshot();  // another thread may realise x meanwhile
  const nb::gil_scoped_release release;
  refuse_values_while_captured();
  HostMemory result;
  const bool can_share =
      copy == HostMemory::kShared && find_device(mine.device()).has_host_memory();
  Ref<Buffer> memory = can_share ? mine.storage()->memory() : Ref<Buffer>();
  while (can_share && !memory) {  // more than once when another thread writes
    Storage* const one[] = {mine.storage().get()};
    realize(one);
    memory = mine.storage()->memory();
  }
  if (memory && !memory->is_seen_outside()) {
    result.first = static_cast<std::byte*>(memory->memory());
    result.bytes = memory->bytes();
    result.view = mine.view();
    result.shared = std::move(memory);
  } else {
    result.copied = mine.bytes();
    result.first = result.copied.data();
    result.bytes = result.copied.size();
    result.view = contiguous_view(mine.dtype(), mine.shape());
  }
  if (result.view.numel() == 0) result.view = contiguous_view(mine.dtype(), mine.shape());
  return result;
}

namespace {

struct DTypeCode {
  DType dtype;
  dlpack::Code code;
};

constexpr std::array kCodes = {
    DTypeCode{dtypes::bool_, dlpack::kBool},      DTypeCode{dtypes::int8, dlpack::kInt},
    DTypeCode{dtypes::int16, dlpack::kInt},       DTypeCode{dtypes::int32, dlpack::kInt},
    DTypeCode{dtypes::int64, dlpack::kInt},       DTypeCode{dtypes::uint8, dlpack::kUInt},
    DTypeCode{dtypes::uint16, dlpack::kUInt},     DTypeCode{dtypes::uint32, dlpack::kUInt},
    DTypeCode{dtypes::uint64, dlpack::kUInt},     DTypeCode{dtypes::float16, dlpack::kFloat},
    DTypeCode{dtypes::float32, dlpack::kFloat},   DTypeCode{dtypes::float64, dlpack::kFloat},
    DTypeCode{dtypes::bfloat16, dlpack::kBfloat},
};

uint8_t bits_of(DType dtype) { return uint8_t(dtype.item_bytes() * 8); }

// ----------------------------------------------------------------------------------------- export

template <class Form>
struct Export {
  HostMemory memory;
  Form form{};

  explicit Export(HostMemory m) : memory(std::move(m)) {
    const DType dtype = memory.view.dtype;
    const auto* const code = std::ranges::find(kCodes, dtype, &DTypeCode::dtype);
    if (code == kCodes.end()) {
      throw DTypeError(fmt::format("[dlpack] other libraries have no {}", dtype.name()));
    }
    form.tensor = {.data = memory.first + size_t(memory.view.offset) * size_t(dtype.item_bytes()),
                   .device = {dlpack::kCpu, 0},
                   .ndim = int32_t(memory.view.rank()),
                   .dtype = {code->code, bits_of(dtype), 1},
                   .shape = memory.view.shape.data(),
                   .strides = memory.view.strides.data(),
                   .byte_offset = 0};
    form.context = this;
    form.deleter = [](Form* f) { delete static_cast<Export*>(f->context); };
  }
};

// A capsule that nobody took is freed with its tensor.
template <class Form>
nb::object capsule_of(std::unique_ptr<Export<Form>> made) {
  const auto free = [](PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, Form::kCapsule) == 0) return;  // renamed: taken
    auto* const form = static_cast<Form*>(PyCapsule_GetPointer(capsule, Form::kCapsule));
    form->deleter(form);
  };
  nb::object capsule = nb::steal(PyCapsule_New(&made->form, Form::kCapsule, free));
  if (!capsule.is_valid()) throw nb::python_error();
  (void)made.release();
  return capsule;
}

[[noreturn]] void buffer_error(const char* text) {
  PyErr_SetString(PyExc_BufferError, text);
  throw nb::python_error();
}

// Read-only where the consumer understands that; a consumer of the old protocol, which could write,
// gets a copy.
nb::object export_dlpack(const Tensor& x, nb::handle, nb::handle max_version, nb::handle dl_device,
                         std::optional<bool> copy) {
  if (!dl_device.is_none() && nb::cast<int>(dl_device[0]) != dlpack::kCpu) {
    buffer_error("[dlpack] tensors are given on the CPU alone");
  }
  const bool is_versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  const bool copies = copy.value_or(!is_versioned);
  if (!is_versioned) {
    if (!copies)
      buffer_error("[dlpack] the old protocol has no read-only memory: a copy is needed");
    return capsule_of(
        std::make_unique<Export<dlpack::Managed>>(host_memory_of(x, HostMemory::kCopied)));
  }
  auto made = std::make_unique<Export<dlpack::Versioned>>(
      host_memory_of(x, copies ? HostMemory::kCopied : HostMemory::kShared));
  const bool is_copy = made->memory.is_copy();
  if (is_copy && copy == false) buffer_error("[dlpack] this tensor can only be given as a copy");
  made->form.major = 1;
  made->form.flags = is_copy ? dlpack::kIsCopied : dlpack::kReadOnly;
  return capsule_of(std::move(made));
}

// ----------------------------------------------------------------------------------------- import

// Memory of another library: told once, with the interpreter's lock, when nobody uses it any more.
template <class Form>
class Lent : public Buffer::Lender {
 public:
  Lent(Form* form, bool is_writable) : form_(form), is_writable_(is_writable) {}
  ~Lent() override {
    if (form_->deleter == nullptr) return;
    let_go(
        [](void* what) {
          auto* const form = static_cast<Form*>(what);
          form->deleter(form);
        },
        form_);
  }
  bool sees_writes() const override { return is_writable_; }

 private:
  Form* form_;
  bool is_writable_;
};

DType dtype_of(const dlpack::DataType& type) {
  const auto* const found = std::ranges::find_if(kCodes, [&](const DTypeCode& c) {
    return c.code == type.code && bits_of(c.dtype) == type.bits && type.lanes == 1;
  });
  if (found == kCodes.end()) {
    throw DTypeError(
        fmt::format("[from_dlpack] there are no tensors of DLPack's type {}, {} bits, {} lanes",
                    type.code, type.bits, type.lanes));
  }
  return found->dtype;
}

View view_of(const dlpack::Tensor& t, DType dtype) {
  const auto rank = size_t(t.ndim);
  View view{dtype, Sizes(std::span<const int64_t>(t.shape, rank)), {}, 0};
  if (t.strides == nullptr || view.numel() == 0) return contiguous_view(dtype, view.shape);
  view.strides = Sizes(std::span<const int64_t>(t.strides, rank));
  return view;
}

template <class Form>
Tensor import_form(Form* form, bool is_writable, std::string_view device_name) {
  auto lender = std::make_unique<Lent<Form>>(form, is_writable);
  const dlpack::Tensor& t = form->tensor;
  if (t.device.type != dlpack::kCpu && t.device.type != dlpack::kCudaHost) {
    throw DeviceError(
        fmt::format("[from_dlpack] memory of a device of type {}: only that of the CPU is taken",
                    t.device.type));
  }
  const DType dtype = dtype_of(t.dtype);
  View view = view_of(t, dtype);
  Device& device = find_device(device_name);
  if (view.numel() == 0) return Tensor::empty(view.shape, dtype, device.name());
  const Hull hull = hull_of(view);
  std::byte* const origin = static_cast<std::byte*>(t.data) + t.byte_offset;
  std::byte* const first = origin + hull.lo * dtype.item_bytes();
  const int64_t count = hull.hi - hull.lo;
  const auto bytes = size_t(count) * size_t(dtype.item_bytes());
  view.offset = -hull.lo;
  if (!device.has_host_memory()) {  // it has to be there
    const Tensor copy = Tensor::from_bytes({first, bytes}, {count}, dtype, device.name());
    return {copy.storage(), std::move(view)};
  }
  ForeignPlace place = import_foreign(device, dtype, first, count, std::move(lender));
  view.offset += place.offset;
  return {std::move(place.storage), std::move(view)};
}

// Whoever takes the tensor of a capsule renames it.
template <class Form>
Form* take(nb::handle capsule) {
  auto* const form = static_cast<Form*>(PyCapsule_GetPointer(capsule.ptr(), Form::kCapsule));
  if (form == nullptr || PyCapsule_SetName(capsule.ptr(), Form::kUsedCapsule) != 0)
    throw nb::python_error();
  return form;
}

nb::object capsule_from(nb::handle x) {
  if (!nb::hasattr(x, "__dlpack__")) {
    type_error(
        fmt::format("[from_dlpack] something with __dlpack__ is needed, not {}", type_text(x)));
  }
  nb::dict options;
  options["max_version"] = nb::make_tuple(1, 0);
  try {
    return x.attr("__dlpack__")(**options);
  } catch (const nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
  }
  return x.attr("__dlpack__")();  // of the old protocol
}

Tensor from_dlpack(nb::handle x, const std::optional<std::string>& device) {
  if (const Tensor* t = as_tensor(x)) return *t;
  finish_letting_go();
  const nb::object capsule = capsule_from(x);
  const std::string name = device.value_or("");
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::Versioned::kCapsule) != 0) {
    auto* const form = take<dlpack::Versioned>(capsule);
    if (form->major > 1) {
      const Lent<dlpack::Versioned> lent(form, false);
      buffer_error("[from_dlpack] a version of the protocol that is not known");
    }
    return import_form(form, (form->flags & dlpack::kReadOnly) == 0, name);
  }
  auto* const form = take<dlpack::Managed>(capsule);
  return import_form(form, true, name);
}

}  // namespace

void bind_dlpack(nb::module_& m, TensorClass& c) {
  c.def("__dlpack__", export_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
        nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
        nb::arg("copy") = nb::none(),
        nb::sig("def __dlpack__(self, *, stream: typing.Any = None, max_version: tuple[int, int] | "
                "None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) "
                "-> typing.Any"),
        "The values for another library, read-only; a copy for one that cannot know that.")
      .def(
          "__dlpack_device__", [](const Tensor&) { return nb::make_tuple(int(dlpack::kCpu), 0); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"), "The CPU.")
      .def_static("from_dlpack", from_dlpack, nb::arg("x"), nb::arg("device") = nb::none(),
                  nb::sig("def from_dlpack(x: typing.Any, device: str | None = None) -> Tensor"),
                  "weft.from_dlpack");
  m.def(
      "from_dlpack", from_dlpack, nb::arg("x"), nb::arg("device") = nb::none(),
      nb::sig("def from_dlpack(x: typing.Any, device: str | None = None) -> Tensor"),
      R"(A tensor on the memory of another library's array: nothing is copied. Imports of one memory
are views of each other. A write to the tensor is done at once, and seen there; where the memory is
read-only it goes to other memory.

>>> import numpy as np
>>> from weft import from_dlpack
>>> array = np.zeros(3, np.int32)
>>> t = from_dlpack(array)
>>> t[1] = 5
>>> array
array([0, 5, 0], dtype=int32)
)");
}

}  // namespace weft::python
