// The memory behind a tensor of the device.
#include "storage.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include "address_space.h"
#include "base/ref.h"
#include "convert.h"
#include "engine/realize.h"
#include "ir/op.h"
#include "reinterpret.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "tensor/operand.h"
#include "value/movement.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/dtype.h"
#include "weft/jit.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

constexpr auto kDeviceType = c10::DeviceType::PrivateUse1;

// All that lives, by address: tensors that PyTorch makes from an address alone (storages of parts,
// DLPack, pickles) find their memory here. It outlives every tensor.
struct Registry {
  std::mutex mutex;
  AddressSpace addresses;
};
Registry& registry() {
  static auto* const kRegistry = new Registry;
  return *kRegistry;
}

void free_memory(void* context) {
  auto& memory = *static_cast<Memory*>(context);
  Ref<Storage> dropped;  // without the lock
  Ref<Value> refused;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  dropped = std::move(memory.storage);
  refused = std::move(memory.refused);
  all.addresses.give_back(memory);
}

c10::DataPtr new_memory(size_t bytes, Ref<Storage> storage = {}) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  Memory& memory = all.addresses.take(bytes);
  memory.storage = std::move(storage);
  return {memory.address, &memory, &free_memory, c10::Device(kDeviceType, 0)};
}

class Allocator final : public c10::Allocator {
 public:
  // Without bytes there is no memory until it is asked for (place_of).
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::Device(kDeviceType, 0)};
    return new_memory(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "weft: memory of the device is not copied by address");
  }
};

// The memory of a storage, and the byte of it that the storage begins at.
struct Place {
  Memory* memory;
  int64_t first = 0;
};

Place place_of(c10::StorageImpl& storage) {
  TORCH_CHECK(storage.device().is_privateuseone(),
              "Expected all tensors to be on the same device, but found at least two devices, ",
              "weft:0 and ", storage.device(), "!");
  c10::DataPtr& pointer = storage._mutable_data_ptr_no_checks();
  if (pointer.get_deleter() == &free_memory) return {static_cast<Memory*>(pointer.get_context())};
  if (storage.nbytes() == 0) {
    storage.set_data_ptr_noswap(new_memory(0));
    return {static_cast<Memory*>(storage._mutable_data_ptr_no_checks().get_context())};
  }
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto address = reinterpret_cast<uintptr_t>(pointer.get());
  Memory* const memory = all.addresses.find(address);
  const auto first = memory == nullptr ? 0 : reinterpret_cast<uintptr_t>(memory->address);
  TORCH_CHECK(memory != nullptr && address + storage.nbytes() <= first + memory->bytes,
              "weft: a data pointer that weft did not make");
  return {memory, int64_t(address - first)};
}

int64_t elements_of(size_t bytes, DType dtype) {
  const auto width = size_t(dtype.item_bytes());
  return int64_t((bytes + width - 1) / width);
}

Ref<Storage> unwritten(DType dtype, int64_t count) {
  return Storage::make(Value::make(Op::BUFFER, dtype, weft_device(), {count}));
}

// The storage, in elements as wide as these. Where it had others, it is made anew: the values that
// were read of the old one keep it. The lock is held.
const Ref<Storage>& storage_locked(Memory& memory, DType dtype) {
  if (!memory.storage) {
    memory.storage = unwritten(dtype, elements_of(memory.bytes, dtype));
  } else if (memory.storage->dtype().item_bytes() != dtype.item_bytes()) {
    const Ref<Value> bits = with_width(memory.storage->version(), dtype.item_bytes());
    memory.storage = Storage::make(bits);
  }
  return memory.storage;
}
Ref<Storage> storage_as(Memory& memory, DType dtype) {
  const std::lock_guard lock(registry().mutex);
  return storage_locked(memory, dtype);
}

// How a tensor sees elements of a storage that starts `first` bytes into its memory.
View view_of_tensor(const at::TensorBase& tensor, const Held& type, int64_t first) {
  const int64_t width = type.dtype.item_bytes();
  TORCH_CHECK(first % width == 0, "weft: a storage that begins between elements of ",
              tensor.scalar_type());
  View view;
  view.dtype = type.dtype;
  view.shape = Sizes(ints(tensor.sizes()));
  view.strides = Sizes(ints(tensor.strides()));
  view.offset = tensor.storage_offset();
  if (type.is_complex) {
    for (int64_t& stride : view.strides) stride *= 2;
    view.offset *= 2;
    view.shape.push_back(2);
    view.strides.push_back(1);
  }
  view.offset += first / width;
  return view;
}

Place place_of(const at::TensorBase& tensor) {
  return place_of(*tensor.storage().unsafeGetStorageImpl());
}

bool is_all_of(const View& view, const Memory& memory) {
  return view.offset == 0 && is_contiguous(view) &&
         view.numel() == elements_of(memory.bytes, view.dtype);
}

// The value is all of a storage, in its order, that nobody else has: memory can take it over.
bool is_whole(const weft::Tensor& value) {
  const Storage& storage = *value.storage();
  return storage.owners() == 1 && storage.dtype() == value.dtype() && storage.origin() == 0 &&
         value.view().offset == 0 && value.numel() == storage.numel() && value.is_contiguous();
}

// Takes the value over where nothing was written to the memory, and the tensor is all of it.
bool adopt(Memory& memory, const at::TensorBase& tensor, const Held& type,
           const weft::Tensor& value) {
  const c10::IntArrayRef sizes = tensor.sizes();
  const Ints shape = value.shape();
  const bool is_all = tensor.storage_offset() == 0 && tensor.is_contiguous() &&
                      value.numel() == elements_of(memory.bytes, type.dtype);
  const bool is_like = shape.size() == sizes.size() + (type.is_complex ? 1 : 0) &&
                       std::equal(sizes.begin(), sizes.end(), shape.begin());
  if (!is_all || !is_like || !is_whole(value)) return false;
  const std::lock_guard lock(registry().mutex);
  if (memory.storage) return false;
  memory.storage = value.storage();
  return true;
}

// The storage that a value is to be written to, through the view. None where it is the first, and
// all of it: then this is done.
Ref<Storage> storage_to_write(Memory& memory, const View& view, const Ref<Value>& value) {
  const std::lock_guard lock(registry().mutex);
  if (memory.storage || !is_all_of(view, memory)) return storage_locked(memory, view.dtype);
  memory.storage = Storage::make(broadcast(value, view.shape));
  return {};
}

// More than the steps of large models have; what lives longer is computed on its own.
constexpr int64_t kMostPending = 200'000;

void keep_bound() {
  if (pending_values() > kMostPending && !is_capturing()) realize_all();
}

// It sees elements of its memory in their order, from the first on.
bool is_in_order(const Place& place, const at::TensorBase& tensor, const Held& type) {
  return place.first == 0 && tensor.storage_offset() == 0 && !type.is_complex &&
         tensor.is_contiguous();
}

// A value for an expanded view as one for without_expanded_axes(view). Throws what PyTorch's
// kernels throw unless it has one number for all elements that are one of memory.
Ref<Value> for_each_once(Ref<Value> value, const View& view) {
  Sizes own(view.rank() - value->shape().size(), 1);
  own.append(value->shape());
  const View each = without_expanded_axes(view);
  for (size_t i = view.rank(); i-- > 0;) {
    if (view.shape[i] == 1 || view.strides[i] != 0) continue;
    TORCH_CHECK(own[i] == 1,
                "unsupported operation: more than one element of the written-to tensor refers to a "
                "single memory location. Please clone() the tensor before performing the "
                "operation.");
    own.erase(i);
  }
  if (value->shape().empty()) return value;
  return broadcast(reshaped(std::move(value), own), each.shape);
}

// What the tensor sees there from now on: of its dtype.
void put_at(const Place& place, const at::TensorBase& tensor, const Held& type, Ref<Value> value) {
  const View view = view_of_tensor(tensor, type, place.first);
  if (const Ref<Storage> storage = storage_to_write(*place.memory, view, value)) {
    if (is_expanded(view)) {
      storage->write(without_expanded_axes(view), for_each_once(std::move(value), view));
    } else {
      if (!value->shape().empty()) value = broadcast(std::move(value), view.shape);
      storage->write(view, std::move(value));
    }
  }
  keep_bound();
}
// The same, where that takes nothing but the value. False otherwise.
bool put_all(const Place& place, const at::TensorBase& tensor, const Held& type,
             Ref<Value>& value) {
  if (!is_in_order(place, tensor, type) || !equal(value->shape(), ints(tensor.sizes()))) {
    return false;
  }
  const Ref<Storage> storage = [&] {
    const std::lock_guard lock(registry().mutex);
    return place.memory->storage;
  }();
  if (!storage || !storage->write_all(value)) return false;
  keep_bound();
  return true;
}

// A new tensor that sees all of a storage, in its order.
at::Tensor tensor_of_all(Ref<Storage> storage, const Sizes& shape, c10::ScalarType type) {
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      storage_around(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(type));
  result.unsafeGetTensorImpl()->set_sizes_contiguous(ints(shape));
  keep_bound();
  return result;
}

// The element of a CPU tensor: a number of the graph.
weft::Tensor scalar_of(const at::TensorBase& tensor, DType dtype) {
  TORCH_CHECK(tensor.device().is_cpu() && tensor.dim() == 0,
              "Expected all tensors to be on the same device, but found at least two devices, ",
              c10::Device(kDeviceType, 0), " and ", tensor.device(), "!");
  const at::Tensor element(tensor);
  return tensor_of(wrapped_constant(weft_device(), dtype,
                                    number_of(at::native::_local_scalar_dense_cpu(element))));
}

}  // namespace

c10::Allocator& allocator() {
  static Allocator allocator;
  return allocator;
}

Device& weft_device() {
  static Device& device = find_device("");
  return device;
}

at::Tensor empty(c10::IntArrayRef sizes, c10::ScalarType type) {
  return at::Tensor(at::detail::empty_generic(
      sizes, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type, std::nullopt));
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType type) {
  return at::Tensor(at::detail::empty_strided_generic(
      sizes, strides, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type));
}

weft::Tensor handle(const at::TensorBase& tensor) {
  const Held type = held(tensor.scalar_type());
  const Place place = place_of(tensor);
  return {storage_as(*place.memory, type.dtype), view_of_tensor(tensor, type, place.first)};
}

weft::Tensor operand(const at::TensorBase& tensor) {
  if (tensor.device().type() == kDeviceType) return handle(tensor);
  return scalar_of(tensor, held(tensor.scalar_type()).dtype);
}

weft::Tensor operand(const at::TensorBase& tensor, c10::ScalarType type) {
  if (tensor.device().type() == kDeviceType) return handle(tensor).cast(dtype_of(type));
  return scalar_of(tensor, dtype_of(type));
}

Ref<Value> value_of(const at::TensorBase& tensor) {
  if (tensor.device().type() != kDeviceType) return read(operand(tensor));
  const Held type = held(tensor.scalar_type());
  const Place place = place_of(tensor);
  if (is_in_order(place, tensor, type)) {
    const std::lock_guard lock(registry().mutex);
    const Storage* const storage = place.memory->storage.get();
    if (storage != nullptr && storage->dtype() == type.dtype) {
      if (Ref<Value> all = storage->read_all(ints(tensor.sizes()))) return all;
    }
  }
  return storage_as(*place.memory, type.dtype)->read(view_of_tensor(tensor, type, place.first));
}

weft::Tensor number(const c10::Scalar& scalar, c10::ScalarType type) {
  return tensor_of(wrapped_constant(weft_device(), dtype_of(type), number_of(scalar)));
}

void put(const at::TensorBase& tensor, weft::Tensor value) {
  if (tensor.numel() == 0) return;
  const Held type = held(tensor.scalar_type());
  const Place place = place_of(tensor);
  if (value.dtype() != type.dtype) value = value.cast(type.dtype);
  if (place.first == 0 && adopt(*place.memory, tensor, type, value)) return keep_bound();
  put_at(place, tensor, type, weft::read(value));
}
void put(const at::TensorBase& tensor, Ref<Value> value) {
  if (tensor.numel() == 0) return;
  const Held type = held(tensor.scalar_type());
  const Place place = place_of(tensor);
  value = cast_value(std::move(value), type.dtype);
  if (!put_all(place, tensor, type, value)) put_at(place, tensor, type, std::move(value));
}

at::Tensor give(weft::Tensor value, c10::ScalarType type) {
  const Held kind = held(type);
  if (value.dtype() != kind.dtype) value = value.cast(kind.dtype);
  if (value.numel() != 0 && is_whole(value)) {
    const Sizes shape(value.shape());
    return tensor_of_all(value.storage(), shape, type);
  }
  at::Tensor result = empty(ints(Sizes(value.shape())), type);
  put(result, std::move(value));
  return result;
}
at::Tensor give(Ref<Value> value, c10::ScalarType type) {
  const Sizes shape(value->shape());
  Ref<Storage> storage = Storage::make(cast_value(std::move(value), held(type).dtype));
  if (storage->numel() == 0) return empty(ints(shape), type);
  return tensor_of_all(std::move(storage), shape, type);
}

c10::Storage storage_around(Ref<Storage> storage) {
  const size_t bytes = size_t(storage->numel()) * size_t(storage->dtype().item_bytes());
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, new_memory(bytes, std::move(storage)),
      &allocator(), /*resizable=*/true));
}

at::Tensor tensor_on(c10::Storage storage, const View& view, c10::ScalarType type) {
  View seen = view;
  if (held(type).is_complex) {
    seen.shape.pop_back();
    seen.strides.pop_back();
    for (int64_t& stride : seen.strides) stride /= 2;
    seen.offset /= 2;
  }
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(type));
  result.unsafeGetTensorImpl()->set_sizes_and_strides(ints(seen.shape), ints(seen.strides),
                                                      seen.offset);
  return result;
}

void copy_in(const at::TensorBase& to, const at::TensorBase& from) {
  TORCH_INTERNAL_ASSERT(from.is_contiguous() && from.scalar_type() == to.scalar_type());
  const Held type = held(from.scalar_type());
  Sizes shape(ints(from.sizes()));
  if (type.is_complex) shape.push_back(2);
  const auto* const bytes = static_cast<const std::byte*>(from.const_data_ptr());
  put(to,
      weft::Tensor::from_bytes({bytes, from.nbytes()}, shape, type.dtype, weft_device().name()));
}

void copy_out(const at::TensorBase& to, const at::TensorBase& from) {
  TORCH_INTERNAL_ASSERT(to.is_contiguous() && from.scalar_type() == to.scalar_type());
  if (to.numel() == 0) return;
  weft::Tensor values = handle(from).contiguous();
  weft::Storage* const one[] = {values.storage().get()};
  weft::realize(one);
  const size_t first = size_t(values.view().offset) * size_t(values.dtype().item_bytes());
  values.storage()->memory()->copy_out_part(
      {static_cast<std::byte*>(to.mutable_data_ptr()), to.nbytes()}, first);
}

void resize_bytes(c10::StorageImpl& storage, size_t bytes) {
  const Place place = place_of(storage);
  if (bytes != storage.nbytes() || place.first != 0) {
    Ref<Storage> resized;
    if (place.memory->storage) {
      const DType dtype = place.memory->storage->dtype();
      const int64_t count = elements_of(bytes, dtype);
      const int64_t kept = std::min(count, place.memory->storage->numel());
      resized = unwritten(dtype, count);
      const View part{dtype, {kept}, {1}, 0};
      if (kept > 0) resized->write(part, place.memory->storage->read(part));
    }
    storage.set_data_ptr_noswap(new_memory(bytes, std::move(resized)));
  }
  storage.set_nbytes(bytes);
}

int64_t live_storages() {
  const std::lock_guard lock(registry().mutex);
  return registry().addresses.taken();
}

bool is_pending(const at::TensorBase& tensor) {
  const Memory& memory = *place_of(tensor).memory;
  return memory.storage && !memory.storage->is_realized();
}

void realize(const at::TensorBase& tensor) {
  const Memory& memory = *place_of(tensor).memory;
  if (!memory.storage) return;
  weft::Storage* const one[] = {memory.storage.get()};
  weft::realize(one);
}

namespace {

// A storage whose version could not be computed: it waits for whoever reads it.
bool is_refused(const Memory& memory) {
  return memory.refused && memory.refused.get() == memory.storage->version().get();
}

void refuse(const Storage* storage) {
  Ref<Value> version = storage->version(), dropped;  // freed without the lock
  const std::lock_guard lock(registry().mutex);
  registry().addresses.visit_taken([&](Memory& memory) {
    if (memory.storage.get() == storage) dropped = std::exchange(memory.refused, version);
  });
}

// Those of these that can be computed. One that cannot be leaves the others as they are.
void realize_each(std::span<Storage* const> storages) {
  std::vector<std::span<Storage* const>> parts = {storages};
  while (!parts.empty()) {
    const std::span<Storage* const> part = parts.back();
    parts.pop_back();
    try {
      weft::realize(part);
    } catch (const std::exception&) {  // told to whoever reads it
      const size_t half = part.size() / 2;
      if (half == 0) {
        if (!part[0]->is_realized()) refuse(part[0]);
        continue;
      }
      parts.push_back(part.subspan(half));
      parts.push_back(part.first(half));
    }
  }
}

}  // namespace

void realize_all() {
  refuse_values_while_captured();
  std::vector<Ref<Storage>> held_storages;
  {
    const std::lock_guard lock(registry().mutex);
    registry().addresses.visit_taken([&](const Memory& memory) {
      if (memory.storage && !memory.storage->is_realized() && !is_refused(memory)) {
        held_storages.push_back(memory.storage);
      }
    });
  }
  std::vector<Storage*> storages;
  storages.reserve(held_storages.size());
  for (const Ref<Storage>& storage : held_storages) storages.push_back(storage.get());
  if (!storages.empty()) realize_each(storages);
}

void synchronize() {
  realize_all();
  weft_device().synchronize();
}

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator())

}  // namespace weft::pytorch
