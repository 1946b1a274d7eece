// Operators that make memory, look at it through views, or change what a tensor stands for. Views
// are PyTorch's own: they change sizes, strides and offsets alone.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "native.h"
#include "operators.h"
#include "storage.h"

namespace weft::pytorch {
namespace {

using at::IntArrayRef;

void check_options(std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                   std::optional<bool> pin_memory) {
  TORCH_CHECK(!device || device->index() <= 0, "weft: invalid device ordinal ",
              int(device->index()), "; there is one device");
  TORCH_CHECK(c10::layout_or_default(layout) == c10::kStrided,
              "weft: tensors of the device are strided");
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
}

at::Tensor empty_of(IntArrayRef sizes, std::optional<c10::ScalarType> type,
                    std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                    std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> format) {
  check_options(layout, device, pin_memory);
  at::Tensor result = empty(sizes, c10::dtype_or_default(type));
  if (format && *format != c10::MemoryFormat::Contiguous) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve,
                "memory format option is only supported by strided tensors");
    result.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return result;
}

at::Tensor empty_strided_of(IntArrayRef sizes, IntArrayRef strides,
                            std::optional<c10::ScalarType> type, std::optional<c10::Layout> layout,
                            std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  check_options(layout, device, pin_memory);
  return empty_strided(sizes, strides, c10::dtype_or_default(type));
}

at::Tensor as_strided(const at::Tensor& self, IntArrayRef sizes, IntArrayRef strides,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, offset);
}

// Memory for what the tensor now says that it sees.
void grow(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return;
  const size_t needed = at::detail::computeStorageNbytes(
      tensor.sizes(), tensor.strides(), tensor.itemsize(), size_t(tensor.storage_offset()));
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  if (needed <= storage.nbytes()) return;
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  resize_bytes(storage, needed);
}

const at::Tensor& resize_(const at::Tensor& self, IntArrayRef sizes,
                          std::optional<c10::MemoryFormat> format) {
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  if (self.sizes() != sizes) {
    impl.set_sizes_contiguous(sizes);
    grow(self);
  }
  if (format) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "Unsupported memory format", *format);
    impl.empty_tensor_restride(*format);
  }
  return self;  // NOLINT(bugprone-return-const-ref-from-parameter): as the schema has it
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage, int64_t offset, IntArrayRef sizes,
                        IntArrayRef strides) {
  at::native::checkSetStorage(self, std::move(storage), offset, sizes, strides);
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  impl.set_storage_offset(offset);
  if (strides.data() != nullptr) {
    impl.set_sizes_and_strides(sizes, strides);
  } else {
    impl.set_sizes_contiguous(sizes);
  }
  grow(self);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage storage) {
  const int64_t count = int64_t(storage.nbytes() / self.itemsize());
  return set_storage(self, std::move(storage), 0, {count}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(),
                     source.strides());
}

at::Tensor& set_nothing(at::Tensor& self) {
  const auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), 0, allocator().allocate(0), &allocator(), true);
  return set_storage(self, c10::Storage(storage), 0, {0}, {});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::empty_memory_format, empty_of, Others::kGiven>(m);
  native<at::_ops::empty_strided, empty_strided_of, Others::kGiven>(m);
  native<at::_ops::as_strided, as_strided, Others::kGiven>(m);
  native<at::_ops::view, at::native::view, Others::kGiven>(m);
  native<at::_ops::_reshape_alias, at::native::_reshape_alias, Others::kGiven>(m);
  native<at::_ops::unfold, at::native::unfold, Others::kGiven>(m);
  native<at::_ops::view_as_real, at::native::view_as_real, Others::kGiven>(m);
  native<at::_ops::view_as_complex, at::native::view_as_complex, Others::kGiven>(m);
  native<at::_ops::is_set_to, at::native::is_set_to, Others::kGiven>(m);
  native<at::_ops::resize_, resize_, Others::kGiven>(m);
  native<at::_ops::set__source_Storage_storage_offset, set_storage, Others::kGiven>(m);
  native<at::_ops::set__source_Storage, set_whole_storage, Others::kGiven>(m);
  native<at::_ops::set__source_Tensor, set_tensor, Others::kGiven>(m);
  native<at::_ops::set_, set_nothing, Others::kGiven>(m);
}

}  // namespace
}  // namespace weft::pytorch
