// DLPack: tensors to and from other libraries.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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
#include "interpreter.h"
#include "let_go.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "tensor.h"
#include "tensor/operand.h"
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
  const InterpreterReleased release;
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
  // Of a file that becomes shorter the system takes the pages away: others get a copy.
  if (memory && !memory->is_seen_outside() && !memory->may_vanish()) {
    memory->check_lender();
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

constexpr int32_t kMostAxes = 64;
constexpr int64_t kMostReach = int64_t(1) << 47;  // of a process

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

[[noreturn]] void buffer_error(const std::string& text) {
  PyErr_SetString(PyExc_BufferError, text.c_str());
  throw nb::python_error();
}

// A pair of ints, as max_version and dl_device are.
std::array<int64_t, 2> pair_of(nb::handle value, const char* name) {
  if (!nb::isinstance<nb::tuple>(value) || nb::len(value) != 2) {
    type_error(fmt::format("[dlpack] {} is None or a tuple of two ints, not {}", name,
                           nb::isinstance<nb::tuple>(value)
                               ? fmt::format("a tuple of {}", nb::len(value))
                               : std::string(type_text(value))));
  }
  std::array<int64_t, 2> pair{};
  for (size_t i = 0; i < pair.size(); i++) {
    const nb::object part = value[i];
    const nb::object number = nb::steal(PyNumber_Index(part.ptr()));
    if (!number.is_valid()) {
      PyErr_Clear();
      type_error(fmt::format("[dlpack] {} is None or a tuple of two ints; one of them is {}", name,
                             type_text(part)));
    }
    int overflow = 0;
    pair[i] = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0) pair[i] = overflow < 0 ? INT64_MIN : INT64_MAX;
  }
  return pair;
}

void check_stream(nb::handle stream) {
  const bool is_int = PyLong_Check(stream.ptr()) != 0;
  if (!stream.is_none() && !is_int) {
    type_error(fmt::format("[dlpack] stream is None or an int, not {}", type_text(stream)));
  }
  if (stream.is_none() || PyObject_RichCompareBool(stream.ptr(), nb::int_(-1).ptr(), Py_EQ) == 1)
    return;
  buffer_error("[dlpack] tensors are given on the CPU, which has no streams: stream must be None");
}

// Read-only where the consumer understands that; a consumer of the old protocol, which could write,
// gets a copy.
nb::object export_dlpack(const Tensor& x, nb::handle stream, nb::handle max_version,
                         nb::handle dl_device, std::optional<bool> copy) {
  check_stream(stream);
  if (!dl_device.is_none() &&
      pair_of(dl_device, "dl_device") != std::array<int64_t, 2>{dlpack::kCpu, 0}) {
    buffer_error("[dlpack] tensors are given on the CPU alone: dl_device must be None or (1, 0)");
  }
  const bool is_versioned = !max_version.is_none() && pair_of(max_version, "max_version")[0] >= 1;
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

[[noreturn]] void refuse(const std::string& what) {
  buffer_error("[from_dlpack] the capsule is not valid: " + what);
}

// The view of a tensor whose numbers fit: sizes, strides and bytes can be counted in 63 bits.
View view_of(const dlpack::Tensor& t, DType dtype) {
  if (t.ndim < 0 || t.ndim > kMostAxes) {
    refuse(fmt::format("it has {} axes; 0 to {} are allowed", t.ndim, kMostAxes));
  }
  if (t.ndim > 0 && t.shape == nullptr) refuse("it has axes and no shape");
  const auto rank = size_t(t.ndim);
  const Sizes shape(std::span<const int64_t>(t.shape, rank));
  if (std::ranges::any_of(shape, [](int64_t size) { return size < 0; })) {
    refuse(fmt::format("its shape is {}", text_of_shape(shape)));
  }
  if (checked_numel("from_dlpack", shape) == 0 || t.strides == nullptr) {
    return contiguous_view(dtype, shape);
  }
  View view{dtype, shape, Sizes(std::span<const int64_t>(t.strides, rank)), 0};
  for (size_t i = 0; i < rank; i++) {  // an axis of one element may have any stride
    if (shape[i] == 1 && std::abs(view.strides[i] / 2) > kMostReach) view.strides[i] = 1;
  }
  return view;
}

// The elements of the view, counted from its first one. It has some.
Hull checked_hull(const View& view) {
  Hull hull{0, 1};
  bool is_endless = false;
  for (size_t i = 0; i < view.rank(); i++) {
    int64_t reach = 0;
    is_endless |= __builtin_mul_overflow(view.shape[i] - 1, view.strides[i], &reach);
    int64_t& end = reach < 0 ? hull.lo : hull.hi;
    is_endless |= __builtin_add_overflow(end, reach, &end);
  }
  int64_t count = 0, bytes = 0;
  is_endless |= __builtin_sub_overflow(hull.hi, hull.lo, &count) ||
                __builtin_mul_overflow(count, int64_t(view.dtype.item_bytes()), &bytes);
  if (is_endless) {
    refuse(fmt::format("shape {} with strides {} reaches past all memory",
                       text_of_shape(view.shape), text_of_shape(view.strides)));
  }
  return hull;
}

// The first byte of the hull, after which all of it lies.
std::byte* checked_start(const dlpack::Tensor& t, const Hull& hull, size_t width) {
  if (t.data == nullptr) refuse("it has elements and no memory");
  __extension__ using Wide = __int128;
  const Wide origin = Wide(uintptr_t(t.data)) + Wide(t.byte_offset);
  const Wide first = origin + Wide(hull.lo) * Wide(width);
  if (first <= 0 || origin + Wide(hull.hi) * Wide(width) > Wide(UINTPTR_MAX / 2)) {
    refuse(fmt::format("its memory at {:#x} with an offset of {} bytes is none of a process",
                       uintptr_t(t.data), t.byte_offset));
  }
  if (first % Wide(width) != 0) {
    refuse(fmt::format("its memory is not aligned to elements of {} bytes", width));
  }
  return reinterpret_cast<std::byte*>(uintptr_t(first));
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
  if (checked_numel("from_dlpack", view.shape) == 0) {
    return Tensor::empty(view.shape, dtype, device.name());
  }
  const Hull hull = checked_hull(view);
  std::byte* const first = checked_start(t, hull, size_t(dtype.item_bytes()));
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
    if (form->major != 1) {
      const uint32_t version = form->major;  // of another one all else may lie elsewhere
      const Lent<dlpack::Versioned> lent(form, false);
      buffer_error(fmt::format("[from_dlpack] version {} of the protocol is not known", version));
    }
    return import_form(form, (form->flags & dlpack::kReadOnly) == 0, name);
  }
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::Managed::kCapsule) == 0) {
    buffer_error(
        fmt::format("[from_dlpack] __dlpack__ gave {}; a capsule that nobody has taken is needed",
                    type_text(capsule)));
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
