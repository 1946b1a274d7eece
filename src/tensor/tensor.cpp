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
#include "tensor/widest_float.h"
#include "value/history.h"
#include "value/number_watch.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/scheduled_kernel.h"
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
  return tensor_of(full_value("full", find_device(device), type, shape, value));
}

Tensor Tensor::zeros(Ints shape, DType dtype, std::string_view device) {
  return full(shape, int64_t(0), dtype, device);
}

Tensor Tensor::ones(Ints shape, DType dtype, std::string_view device) {
  return full(shape, int64_t(1), dtype, device);
}

Tensor Tensor::arange(Number stop) { return arange(int64_t(0), stop); }

namespace {

__extension__ using Wide = __int128;

// How many numbers from start to stop, which stays out.
int64_t count_steps(Number start, Number stop, Number step) {
  const bool is_real = start.index() == 2 || stop.index() == 2 || step.index() == 2;
  if (as_double(step) == 0) throw ShapeError("[arange] the step is 0");
  constexpr int64_t most = (int64_t(1) << 62) - 1;
  bool is_endless = false;
  int64_t count = 0;
  if (is_real) {
    for (const Number& number : {start, stop, step}) {
      if (number.index() != 2) assume_exact({as_int(number)});
    }
    const double steps = std::ceil((as_double(stop) - as_double(start)) / as_double(step));
    is_endless = !(steps < double(most));
    if (!is_endless) count = int64_t(std::max(steps, 0.0));
  } else {
    const Wide span = Wide(as_int(stop)) - as_int(start), by = as_int(step);
    const Wide steps = (span + by + (by > 0 ? -1 : 1)) / by;
    if (by != 1) assume_exact({as_int(start), as_int(stop), as_int(step)});
    if (by == 1) is_less(as_int(start), as_int(stop));
    is_endless = steps > most;
    count = int64_t(std::max<Wide>(steps, 0));
  }
  if (is_endless) {
    throw ShapeError(fmt::format("[arange] from {} to {} by {} are too many numbers",
                                 as_double(start), as_double(stop), as_double(step)));
  }
  return count;
}

// The first and the last of integers are values of the dtype.
void check_ends(DType type, Number start, Number step, int64_t count) {
  if (count == 0) return;
  check_fits("arange", type, start);
  if (start.index() == 2 || step.index() == 2) {
    check_fits("arange", type, as_double(start) + double(count - 1) * as_double(step));
    return;
  }
  const Wide last = Wide(as_int(start)) + Wide(count - 1) * as_int(step);  // between start and stop
  check_fits("arange", type, int64_t(last));
}

// Floats of at most 24 bits are exact in float32: all below this.
constexpr double kExactInFloat32 = 0x1p24;

bool is_exact_in_float32(Number number, int64_t count) {
  const double x = as_double(number);
  const bool is_it =
      x == std::trunc(x) && std::fabs(x) * double(std::max<int64_t>(count, 1)) <= kExactInFloat32;
  constexpr int64_t few = 1 << 12;
  if (is_it && std::fabs(x) <= few && count <= few) {
    assume_at_most(int64_t(std::fabs(x)), few);
    assume_at_most(count, few);
  } else if (is_it) {
    assume_exact({int64_t(x), count});
  }
  return is_it;
}

}  // namespace

Tensor Tensor::arange(Number start, Number stop, Number step, std::optional<DType> dtype,
                      std::string_view device_name) {
  const DType type = dtype.value_or(promote(promote(dtype_of_number(start), stop), step).is_float()
                                        ? default_float()
                                        : default_int());
  check_dtype("arange", type);
  if (type.is_bool()) throw DTypeError("[arange] there are no numbers in bool");
  Device& device = find_device(device_name);
  const int64_t count = count_steps(start, stop, step);
  check_ends(type, start, step, count);
  const int64_t shape[] = {count};
  const Ints sizes{std::span<const int64_t>(shape)};
  // Floats are counted where start + i*step is exact, or else rounded once from float64.
  const bool is_narrow = is_exact_in_float32(start, 1) && is_exact_in_float32(step, count);
  const DType in = !type.is_float() ? type : is_narrow ? dtypes::float32 : dtypes::float64;
  if (in == dtypes::float64 && type != in && widest_float(device) != in) {
    return arange(start, stop, step, type, ref_device().name()).to(device.name());
  }
  const DType counted = !in.is_float() ? in : count > INT32_MAX ? dtypes::int64 : dtypes::int32;
  Ref<Value> value = cast_value(Value::make(Op::IOTA, counted, device, sizes), in);
  if (as_double(step) != 1) {
    value = apply(Op::MUL, in, sizes, std::move(value), wrapped_constant(device, in, step));
  }
  if (as_double(start) != 0) {
    value = apply(Op::ADD, in, sizes, std::move(value), wrapped_constant(device, in, start));
  }
  return tensor_of(cast_value(std::move(value), type));
}

namespace {

// The bytes as 0 and 1; nothing where they are.
std::vector<std::byte> as_bools(std::span<const std::byte> bytes) {
  std::byte seen{};
  for (const std::byte b : bytes) seen |= b;
  if (seen <= std::byte(1)) return {};
  std::vector<std::byte> bools(bytes.begin(), bytes.end());
  for (std::byte& b : bools) b = std::byte(b != std::byte(0));
  return bools;
}

}  // namespace

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, Ints shape, DType dtype,
                          std::string_view device_name) {
  check_dtype("from_bytes", dtype);
  const int64_t count = checked_numel("from_bytes", shape);
  Device& device = find_device(device_name);
  const size_t needed = Buffer::bytes_for(device, dtype, count);
  if (bytes.size() != needed) {
    throw ShapeError(fmt::format("[from_bytes] {} of {} takes {} bytes; given are {}",
                                 text_of_shape(shape), dtype.name(), needed, bytes.size()));
  }
  Ref<Buffer> buffer = Buffer::make(device, bytes.size());
  const std::vector<std::byte> bools = dtype.is_bool() ? as_bools(bytes) : std::vector<std::byte>();
  buffer->copy_in(bools.empty() ? bytes : bools);
  return tensor_of(Value::make_filled(dtype, device, shape, std::move(buffer)));
}

// ----------------------------------------------------------------------------------- what it is

std::string Tensor::device() const { return device_of(*this).name(); }
Tensor Tensor::viewed(View view) const {
  note_event(StorageEvent::Kind::kViewed, *storage_, &view);
  Tensor result(storage_, std::move(view));
  result.is_detached_ = is_detached_;
  return result;
}

bool Tensor::is_contiguous() const { return weft::is_contiguous(view_); }
bool Tensor::is_realized() const { return storage_->is_realized(); }

// ---------------------------------------------------------------------------------------- copies

Tensor Tensor::clone() const { return tensor_of(read(*this)); }
Tensor Tensor::to(std::string_view device) const {
  Device& target = find_device(device);
  if (&target == &device_of(*this)) return *this;
  if (storage_watch() != nullptr) {
    throw JitError(fmt::format("[to] from {} to {}: a function that is captured stays on a device",
                               this->device(), device));
  }
  return tensor_of(Value::make(Op::COPY, dtype(), target, shape(), {}, read(*this)));
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

// ---------------------------------------------------------------------------------------- values

namespace {

// The elements of the storage from the first to the last that the tensor sees.
Hull extent_of(const Tensor& x) { return x.numel() == 0 ? Hull{0, 0} : hull_of(x.view()); }

// A part of a storage that nobody else sees: its other elements need no values.
bool is_lone_part(const Tensor& x) {
  if (x.storage()->owners() != 1 || x.storage()->leaf_number() != 0) return false;
  const Hull hull = extent_of(x);
  return hull.hi - hull.lo < x.storage()->numel() && !x.storage()->is_realized();
}

// A bool view of other elements: their bytes may be any.
bool is_bool_of_bytes(const Tensor& x) {
  return x.dtype().is_bool() && !x.storage()->dtype().is_bool();
}

// The same view of no more of its storage than lies between its first and its last element. Strides
// stay: what is a view of it, and what has to be a copy, does not depend on what was realised.
Tensor cut_to_hull(const Tensor& x) {
  View view = x.view();
  const Hull hull = extent_of(x);
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
  if (StorageWatch* watch = storage_watch()) {  // what is captured is computed together
    for (const Tensor* tensor : tensors) watch->touch(*tensor->storage_);
    return;
  }
  for (Tensor* tensor : tensors) tensor->leave_rest();  // a second time does nothing
  std::vector<Storage*> storages;
  for (Tensor* tensor : tensors) storages.push_back(tensor->storage_.get());
  weft::realize(storages);
}

Tensor& Tensor::leave_rest() {
  if (is_lone_part(*this)) *this = cut_to_hull(*this);
  return *this;
}

Tensor Tensor::snapshot() const {
  return is_lone_part(*this) || is_bool_of_bytes(*this) ? clone() : *this;
}

namespace {

// What a realise of these tensors works on.
class Parts {
 public:
  explicit Parts(std::span<const Tensor* const> tensors) {
    for (const Tensor* tensor : tensors) {
      parts_.push_back(is_lone_part(*tensor) ? cut_to_hull(*tensor) : *tensor);
    }
    for (const Tensor& part : parts_) storages_.push_back(part.storage().get());
  }
  std::span<Storage* const> storages() const { return storages_; }

 private:
  std::vector<Tensor> parts_;
  std::vector<Storage*> storages_;
};

}  // namespace

std::vector<ScheduledKernel> Tensor::schedule() const {
  const Tensor* const one[] = {this};
  return schedule(one);
}

std::vector<ScheduledKernel> Tensor::schedule(std::span<const Tensor* const> tensors) {
  return kernels_to_realize(Parts(tensors).storages());
}

size_t Tensor::kernel_count() const {
  const Tensor* const one[] = {this};
  return kernel_count(one);
}

size_t Tensor::kernel_count(std::span<const Tensor* const> tensors) {
  return count_kernels_to_realize(Parts(tensors).storages());
}

namespace {

// The elements of a view of memory, in row-major order.
std::vector<std::byte> laid_out(const Buffer& buffer, const View& view) {
  const size_t width = size_t(view.dtype.item_bytes());
  std::vector<std::byte> result(Buffer::bytes_for(buffer.device(), view.dtype, view.numel()));
  if (result.empty()) return result;
  if (is_contiguous(view)) {
    buffer.copy_out_part(result, size_t(view.offset) * width);
    return result;
  }
  std::vector<std::byte> copy;
  buffer.check_lender();
  const auto* all = static_cast<const std::byte*>(buffer.memory());
  if (!buffer.device().has_host_memory()) {
    copy.resize(buffer.bytes());
    buffer.copy_out(copy);
    all = copy.data();
  }
  Sizes at(view.rank());
  int64_t from = view.offset;
  for (size_t to = 0; to < result.size(); to += width) {
    std::memcpy(result.data() + to, all + size_t(from) * width, width);
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
  refuse_values_while_captured();
  if (is_lone_part(*this) || is_bool_of_bytes(*this)) return clone().bytes();
  Ref<Buffer> memory = storage_->memory();
  while (!memory) {  // more than once when another thread writes
    Storage* const one[] = {storage_.get()};
    weft::realize(one);
    memory = storage_->memory();
  }
  return laid_out(*memory, view_);
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
