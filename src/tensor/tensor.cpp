// Tensors made, looked at and realised.
#include "weft/tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "engine/realize.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "runtime/array_bytes.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "tensor/operand.h"
#include "tensor/promote.h"
#include "value/storage.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/view.h"

namespace weft {
namespace {

void check_dtype(std::string_view what, DType dtype) {
  if (!dtype.is_void() && !dtype.is_index() && !dtype.is_pointer() && !dtype.is_vector()) return;
  throw DTypeError(fmt::format("[{}] tensors do not have elements of {}", what, dtype.name()));
}

double as_double(Number number) {
  return std::visit([](auto v) { return double(v); }, number);
}
int64_t as_int(Number number) {
  if (const double* real = std::get_if<double>(&number)) return int64_t(*real);
  return number.index() == 0 ? int64_t(std::get<bool>(number)) : std::get<int64_t>(number);
}

}  // namespace

// ------------------------------------------------------------------------------------- creation

Tensor Tensor::empty(Ints shape, DType dtype, std::string_view device) {
  check_dtype("empty", dtype);
  checked_numel("empty", shape);
  return tensor_of(Value::make(Op::BUFFER, dtype, find_device(device), shape));
}

Tensor Tensor::full(Ints shape, Number value, std::optional<DType> dtype, std::string_view device) {
  const DType type = dtype.value_or(dtype_of_number(value));
  check_dtype("full", type);
  checked_numel("full", shape);
  return tensor_of(full_value(find_device(device), type, shape, value));
}

Tensor Tensor::zeros(Ints shape, DType dtype, std::string_view device) {
  return full(shape, int64_t(0), dtype, device);
}

Tensor Tensor::ones(Ints shape, DType dtype, std::string_view device) {
  return full(shape, int64_t(1), dtype, device);
}

Tensor Tensor::arange(Number stop) { return arange(int64_t(0), stop); }

namespace {

// How many numbers from start to stop, which stays out.
int64_t count_steps(Number start, Number stop, Number step) {
  const bool is_real = start.index() == 2 || stop.index() == 2 || step.index() == 2;
  if (as_double(step) == 0) throw ShapeError("[arange] the step is 0");
  double count = 0;
  if (is_real) {
    count = std::ceil((as_double(stop) - as_double(start)) / as_double(step));
  } else {
    __extension__ using Wide = __int128;
    const Wide span = Wide(as_int(stop)) - as_int(start), by = as_int(step);
    const Wide steps = (span + by + (by > 0 ? -1 : 1)) / by;
    count = double(steps);
  }
  if (!(count < 0x1p62)) {
    throw ShapeError(fmt::format("[arange] from {} to {} by {} are too many numbers",
                                 as_double(start), as_double(stop), as_double(step)));
  }
  return std::max<int64_t>(int64_t(count), 0);
}

// Floats of at most 24 bits are exact in float32: all below this.
constexpr double kExactInFloat32 = 0x1p24;

bool is_exact_in_float32(Number number, int64_t count) {
  const double x = as_double(number);
  return x == std::trunc(x) &&
         std::fabs(x) * double(std::max<int64_t>(count, 1)) <= kExactInFloat32;
}

}  // namespace

Tensor Tensor::arange(Number start, Number stop, Number step, std::optional<DType> dtype,
                      std::string_view device_name) {
  const DType type = dtype.value_or(promote(promote(dtype_of_number(start), stop), step).is_float()
                                        ? dtypes::float32
                                        : dtypes::int32);
  check_dtype("arange", type);
  if (type.is_bool()) throw DTypeError("[arange] there are no numbers in bool");
  Device& device = find_device(device_name);
  const int64_t count = count_steps(start, stop, step);
  const int64_t shape[] = {count};
  const Ints sizes{std::span<const int64_t>(shape)};
  // Floats are counted where start + i*step is exact, or else rounded once from float64.
  const bool is_narrow = is_exact_in_float32(start, 1) && is_exact_in_float32(step, count);
  const DType in = !type.is_float() ? type : is_narrow ? dtypes::float32 : dtypes::float64;
  const DType counted = !in.is_float() ? in : count > INT32_MAX ? dtypes::int64 : dtypes::int32;
  Ref<Value> value = cast_value(Value::make(Op::IOTA, counted, device, sizes), in);
  if (as_double(step) != 1) {
    value = apply(Op::MUL, in, sizes, std::move(value), constant_value(device, in, step));
  }
  if (as_double(start) != 0) {
    value = apply(Op::ADD, in, sizes, std::move(value), constant_value(device, in, start));
  }
  return tensor_of(cast_value(std::move(value), type));
}

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, Ints shape, DType dtype,
                          std::string_view device_name) {
  check_dtype("from_bytes", dtype);
  const int64_t count = checked_numel("from_bytes", shape);
  const uint64_t needed = uint64_t(count) * uint64_t(dtype.item_bytes());
  if (bytes.size() != needed) {
    throw ShapeError(fmt::format("[from_bytes] {} of {} takes {} bytes; given are {}",
                                 text_of_shape(shape), dtype.name(), needed, bytes.size()));
  }
  Device& device = find_device(device_name);
  Ref<Buffer> buffer = Buffer::make(device, bytes.size());
  buffer->copy_in(bytes);
  return tensor_of(Value::make_filled(dtype, device, shape, std::move(buffer)));
}

// ----------------------------------------------------------------------------------- what it is

std::string Tensor::device() const { return device_of(*this).name(); }
bool Tensor::is_contiguous() const { return weft::is_contiguous(view_); }
bool Tensor::is_realized() const { return storage_->is_realized(); }

// ---------------------------------------------------------------------------------------- copies

Tensor Tensor::clone() const { return tensor_of(read(*this)); }
Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }
Tensor Tensor::detach() const { return *this; }

// ---------------------------------------------------------------------------------------- values

namespace {

// A part of a storage that nobody else sees: its other elements need no values.
bool is_lone_part(const Tensor& x) {
  return x.storage()->owners() == 1 && x.numel() < x.storage()->numel() &&
         !x.storage()->is_realized();
}

// The same view of no more of its storage than lies between its first and its last element. Strides
// stay: what is a view of it, and what has to be a copy, does not depend on what was realised.
Tensor cut_to_hull(const Tensor& x) {
  View view = x.view();
  const Hull hull = view.numel() == 0 ? Hull{0, 0} : hull_of(view);
  const DType dtype = x.storage()->dtype();
  const View part{dtype, {hull.hi - hull.lo}, {1}, hull.lo};
  const int64_t origin = x.storage()->origin() + hull.lo;
  view.offset -= hull.lo;
  return {Storage::make(x.storage()->read(part), origin), std::move(view)};
}

}  // namespace

Tensor& Tensor::realize() {
  Tensor* const one[] = {this};
  realize(one);
  return *this;
}

void Tensor::realize(std::span<Tensor* const> tensors) {
  std::vector<Storage*> storages;
  for (Tensor* tensor : tensors) {
    if (is_lone_part(*tensor)) *tensor = cut_to_hull(*tensor);
    storages.push_back(tensor->storage_.get());
  }
  weft::realize(storages);
}

size_t Tensor::kernel_count() const {
  const Tensor part = is_lone_part(*this) ? cut_to_hull(*this) : *this;
  Storage* const one[] = {part.storage_.get()};
  return kernels_to_realize(one);
}

namespace {

// The elements of a view of memory, in row-major order.
std::vector<std::byte> gather(const Buffer& buffer, const View& view) {
  const size_t width = size_t(view.dtype.item_bytes());
  std::vector<std::byte> result(size_t(view.numel()) * width);
  if (result.empty()) return result;
  std::vector<std::byte> all(buffer.bytes());
  buffer.copy_out(all);
  if (is_contiguous(view)) {
    std::memcpy(result.data(), all.data() + size_t(view.offset) * width, result.size());
    return result;
  }
  Sizes at(view.rank());
  int64_t from = view.offset;
  for (size_t to = 0; to < result.size(); to += width) {
    std::memcpy(result.data() + to, all.data() + size_t(from) * width, width);
    for (size_t i = view.rank(); i-- > 0;) {
      from += view.strides[i];
      if (++at[i] < view.shape[i]) break;
      from -= view.strides[i] * view.shape[i];
      at[i] = 0;
    }
  }
  return result;
}

}  // namespace

std::vector<std::byte> Tensor::bytes() const {
  if (is_lone_part(*this)) return clone().bytes();
  Ref<Buffer> memory = storage_->memory();
  while (!memory) {  // more than once when another thread writes
    Storage* const one[] = {storage_.get()};
    weft::realize(one);
    memory = storage_->memory();
  }
  return gather(*memory, view_);
}

Element Tensor::item() const {
  if (numel() != 1) {
    throw ShapeError(
        fmt::format("[item] {} has {} elements, not one", text_of_shape(shape()), numel()));
  }
  return {dtype(), load_bits(dtype(), bytes().data())};
}

double Element::as_double() const { return double_of_bits(dtype, bits); }

int64_t Element::as_int() const { return int64_t(cast(dtypes::int64).bits); }

Element Element::cast(DType to) const {
  const std::array operand = {bits};
  return {to, evaluate_scalar(Op::CAST, dtype, to, operand).value()};
}

}  // namespace weft
