// Making and freeing Values. Each is one allocation: the shape and the numbers follow it.
#include "value/value.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "weft/view.h"

namespace weft {
namespace {

std::atomic<int64_t> pending_count = 0;
std::atomic<int64_t> pinned_count = 0;

}  // namespace

int64_t pending_values() { return pending_count.load(std::memory_order_relaxed); }
int64_t pinned_bytes() { return pinned_count.load(std::memory_order_relaxed); }

Value::Value(Op op, DType dtype, Device& device, Ints shape, Ints numbers)
    : device_(&device),
      dtype_(dtype),
      rank_(uint16_t(shape.size())),
      number_count_(uint16_t(numbers.size())),
      op_(op) {
  std::copy(shape.begin(), shape.end(), tail());
  std::copy(numbers.begin(), numbers.end(), tail() + rank_);
}

Value* Value::allocate(Op op, DType dtype, Device& device, Ints shape, Ints numbers) {
  const size_t most = std::numeric_limits<uint16_t>::max();
  if (shape.size() > most || numbers.size() > most) {
    throw ShapeError(fmt::format("[tensor] a tensor of {} axes has too many", shape.size()));
  }
  const size_t bytes = sizeof(Value) + sizeof(int64_t) * (shape.size() + numbers.size());
  return new (::operator new(bytes)) Value(op, dtype, device, shape, numbers);
}

Ref<Value> Value::make(Op op, DType dtype, Device& device, Ints shape, Ints numbers, Ref<Value> a,
                       Ref<Value> b, Ref<Value> c) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    // The sources go when this returns: `shape` may be that of one of them.
    Value* value = allocate(Op::BUFFER, dtype, device, shape, {});
    pending_count.fetch_add(1, std::memory_order_relaxed);
    return Ref<Value>::adopt(value);
  }
  Value* value = allocate(op, dtype, device, shape, numbers);
  value->source_count_ = uint8_t(bool(a) + bool(b) + bool(c));
  value->sources_[0] = std::move(a);
  value->sources_[1] = std::move(b);
  value->sources_[2] = std::move(c);
  pending_count.fetch_add(1, std::memory_order_relaxed);
  return Ref<Value>::adopt(value);
}

Ref<Value> Value::make_filled(DType dtype, Device& device, Ints shape, Ref<Buffer> buffer) {
  Value* value = allocate(Op::BUFFER, dtype, device, shape, {});
  value->generation_ = buffer->generation();
  value->buffer_ = std::move(buffer);
  value->set_filled();
  return Ref<Value>::adopt(value);
}

int64_t Value::numel() const {
  int64_t n = 1;
  for (const int64_t size : shape()) n *= size;
  return n;
}

View Value::written() const {
  const Ints all = numbers();
  const size_t rank = all.size() / 2;
  return {dtype_, all.subspan(0, rank), all.subspan(rank, rank), all[2 * rank]};
}

const Ref<Buffer>& Value::buffer() const {
  if (buffer_->generation() != generation_) {
    if (buffer_->is_lost()) {
      throw DeviceError(
          "[value] a kernel failed while this memory was being written: what it held is lost; "
          "write all of the tensor anew");
    }
    throw InternalError(
        fmt::format("[value] generation {} of a buffer is read, which is now at generation {}",
                    generation_, buffer_->generation()));
  }
  return buffer_;
}

void Value::fill(Ref<Buffer> buffer, std::span<Ref<Value>, kMostSources> released) {
  if (!buffer_) pending_count.fetch_sub(1, std::memory_order_relaxed);
  generation_ = buffer->generation();
  buffer_ = std::move(buffer);
  set_filled();
  for (size_t i = 0; i < source_count_; i++) released[i] = std::move(sources_[i]);
  source_count_ = 0;
}

// An empty slot, or one or more Storages: not pinned.
void Value::add_storage() noexcept {
  const uint32_t before = state_.fetch_add(kOneStorage, std::memory_order_acq_rel);
  if (before == kFilled) pinned_count.fetch_sub(bytes(), std::memory_order_relaxed);
}

void Value::remove_storage() noexcept {
  const uint32_t before = state_.fetch_sub(kOneStorage, std::memory_order_acq_rel);
  if (before == (kFilled | kOneStorage)) pinned_count.fetch_add(bytes(), std::memory_order_relaxed);
}

void Value::set_filled() noexcept {
  const uint32_t before = state_.fetch_or(kFilled, std::memory_order_acq_rel);
  if (before == 0) pinned_count.fetch_add(bytes(), std::memory_order_relaxed);
}

int64_t Value::bytes() const { return int64_t(uint64_t(numel()) * uint64_t(dtype_.item_bytes())); }

void retain(Value* value) noexcept { value->owners_.fetch_add(1, std::memory_order_relaxed); }

void release(Value* value) noexcept {
  if (value->owners_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  value->next_ = nullptr;
  Value::free_all(value);
}

// Frees a list, and what only its members held, however deep that goes.
void Value::free_all(Value* first) noexcept {
  while (first != nullptr) {
    Value* value = first;
    first = value->next_;
    if (!value->buffer_) pending_count.fetch_sub(1, std::memory_order_relaxed);
    if (value->state_.load(std::memory_order_relaxed) == kFilled) {
      pinned_count.fetch_sub(value->bytes(), std::memory_order_relaxed);
    }
    for (size_t i = 0; i < value->source_count_; i++) {
      Value* source = value->sources_[i].detach();
      if (source->owners_.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      source->next_ = first;
      first = source;
    }
    value->~Value();
    ::operator delete(value);
  }
}

}  // namespace weft
