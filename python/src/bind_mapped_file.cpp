// Files of tensors: their bytes, and tensors on them.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "core.h"
#include "engine/foreign_memory.h"
#include "interpreter.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/mapped_file.h"
#include "tensor.h"
#include "tensor/operand.h"
#include "value/view.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::python {
namespace {

// A Python MappedFile. Tensors share the file itself: they are freed by any thread.
struct FileHandle {
  std::shared_ptr<const MappedFile> file;
};

// An error of the system as Python's OSError.
template <class Call>
auto with_os_errors(Call&& call) {
  try {
    return call();
  } catch (const std::system_error& error) {
    errno = error.code().value();
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
}

void check_part(const MappedFile& file, int64_t first, int64_t count) {
  if (first >= 0 && count >= 0 && size_t(first) <= file.bytes() &&
      size_t(count) <= file.bytes() - size_t(first)) {
    return;
  }
  throw IndexError(
      fmt::format("[mapped file] {} bytes from {} on, of {}", count, first, file.bytes()));
}

nb::bytes read(const FileHandle& handle, int64_t first, int64_t count) {
  const MappedFile& file = *handle.file;
  check_part(file, first, count);
  nb::object made = nb::steal(PyBytes_FromStringAndSize(nullptr, Py_ssize_t(count)));
  if (!made.is_valid()) throw nb::python_error();
  const std::span to(reinterpret_cast<std::byte*>(PyBytes_AS_STRING(made.ptr())), size_t(count));
  with_os_errors([&] {
    const InterpreterReleased released;
    file.read(size_t(first), to);
  });
  return nb::borrow<nb::bytes>(made);
}

// On the memory of the file, where that is aligned and the device's memory is the process's; else
// on a copy of it.
Tensor tensor(const FileHandle& handle, int64_t first, nb::handle sizes, DType dtype,
              const std::string& device_name, bool is_copy) {
  const MappedFile& file = *handle.file;
  const Sizes shape(*axes_of(sizes, "mapped file"));
  const int64_t count = checked_numel("mapped file", shape);
  Device& device = find_device(device_name);
  if (count == 0) return Tensor::empty(shape, dtype, device.name());
  const auto bytes = int64_t(Buffer::bytes_for(device, dtype, count));
  check_part(file, first, bytes);
  std::byte* const start = file.memory() + first;
  const bool is_aligned = uintptr_t(start) % size_t(dtype.item_bytes()) == 0;
  if (is_copy || !is_aligned || !device.has_host_memory()) {
    std::vector<std::byte> copy(static_cast<size_t>(bytes));
    with_os_errors([&] { file.read(size_t(first), copy); });
    return Tensor::from_bytes(copy, shape, dtype, device.name());
  }
  ForeignPlace place = import_foreign(device, dtype, start, count,
                                      MappedFile::lend(handle.file, size_t(first + bytes)));
  View view = contiguous_view(dtype, shape);
  view.offset = place.offset;
  return {std::move(place.storage), std::move(view)};
}

}  // namespace

void bind_mapped_file(nb::module_& m) {
  nb::class_<FileHandle>(m, "MappedFile", "A file as memory that tensors can lie in.")
      .def_static(
          "of",
          [](int descriptor) {
            return with_os_errors(
                [&] { return FileHandle{std::make_shared<const MappedFile>(descriptor)}; });
          },
          nb::arg("descriptor"), "The open file; the descriptor may be closed afterwards.")
      .def_prop_ro("size", [](const FileHandle& handle) { return handle.file->bytes(); })
      .def("read", read, nb::arg("first"), nb::arg("count"),
           nb::sig("def read(self, first: int, count: int) -> bytes"),
           "Bytes of the file, read without the map.")
      .def("tensor", tensor, nb::arg("first"), nb::arg("shape"), nb::arg("dtype"),
           nb::arg("device"), nb::arg("copy"),
           nb::sig(
               "def tensor(self, first: int, shape: collections.abc.Sequence[int], dtype: DType, "
               "device: str, copy: bool) -> Tensor"),
           "A tensor on the bytes from `first` on, or on a copy, also where they are not aligned.");
}

}  // namespace weft::python
