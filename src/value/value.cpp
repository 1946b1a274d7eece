// Making and freeing Values. Each is one allocation: the shape and the numbers follow it.
#include "value/value.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/buffer.h"
#include "runtime/counters.h"
#include "runtime/device.h"
#include "value/custom_kernel.h"
#include "value/linked_step.h"
#include "value/sites.h"
#include "value/tape.h"
#include "weft/view.h"

namespace weft {
namespace {

// Of Values that are pending, and above these bits of calls that wait: one number, as all
// operations count.
constexpr int kPendingBits = 40;
std::atomic<int64_t> pending_count = 0;
std::atomic<int64_t> pinned_count = 0;

}  // namespace

int64_t pending_values() {
  return pending_count.load(std::memory_order_relaxed) & ((int64_t(1) << kPendingBits) - 1);
}
int64_t pinned_bytes() { return pinned_count.load(std::memory_order_relaxed); }
int64_t waiting_values() { return pending_count.load(std::memory_order_relaxed) >> kPendingBits; }

Value::Value(Op op, Kind kind, DType dtype, Device& device, Ints shape, size_t numbers)
    : dtype_(dtype),
      device_(&device),
      rank_(uint16_t(shape.size())),
      number_count_(uint16_t(numbers)),
      op_(op),
      kind_(kind) {
  std::copy(shape.begin(), shape.end(), tail());
}

// In each caller: most know the kind.
[[gnu::always_inline]] inline Value* Value::allocate(Op op, Kind kind, DType dtype, Device& device,
                                                     Ints shape, size_t numbers) {
  const size_t most = std::numeric_limits<uint16_t>::max();
  if (shape.size() > most || numbers > most) {
    throw ShapeError(fmt::format("[tensor] a tensor of {} axes has too many", shape.size()));
  }
  const size_t bytes = sizeof(Value) + sizeof(int64_t) * (shape.size() + numbers) +
                       (has_payload(kind) ? sizeof(Payload) : 0);
  Value* value = new (::operator new(bytes)) Value(op, kind, dtype, device, shape, numbers);
  count_live_value(1);
  if (sites_are_noted()) [[unlikely]]
    detail::note_site(value);
  return value;
}

Ref<Value> Value::make(Op op, DType dtype, Device& device, Ints shape, Ints numbers, Ref<Value> a,
                       Ref<Value> b, Ref<Value> c) {
  device.check_has(dtype);
  Ref<Value> sources[] = {std::move(a), std::move(b), std::move(c)};
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    return make_empty(op, dtype, device, shape, sources);
  }
  Value* value = allocate(op, Kind::kPlain, dtype, device, shape, numbers.size());
  std::copy(numbers.begin(), numbers.end(), value->tail() + value->rank_);
  value->set_sources(sources);
  value->read_count_ = value->source_count_;
  return Ref<Value>::adopt(value);
}

// Sources that it does not hold go when this returns: `shape` may be that of one of them.
Ref<Value> Value::make_empty(Op op, DType dtype, Device& device, Ints shape,
                             std::span<Ref<Value>, kMostSources> sources) {
  const bool has_gradient = dtype.is_float() && op != Op::DETACH && gradients_are_on();
  Value* value = allocate(Op::BUFFER, Kind::kPlain, dtype, device, shape, 0);
  std::array<Ref<Value>, kMostSources> none;
  value->set_sources(has_gradient ? sources : std::span(none));
  return Ref<Value>::adopt(value);
}

void Value::set_sources(std::span<Ref<Value>, kMostSources> sources) {
  for (size_t i = 0; i < kMostSources; i++) {
    if (sources[i]) source_count_++;
    sources_[i] = std::move(sources[i]);
  }
  flags_ = flags_of(*this);
  pending_count.fetch_add(1, std::memory_order_relaxed);
}

// One, and of a call that waits what it will be.
int64_t Value::pending_share() const {
  return is_waiting() ? (int64_t(1) << kPendingBits) + payload().values + 1 : 1;
}

Ref<Value> Value::make_tied(Ref<Value> value, Ref<Value> other) {
  const Sizes shape(value->shape());
  const DType dtype = value->dtype();
  Device& device = value->device();
  Ref<Value> tied =
      make(Op::CONTIGUOUS_BACKWARD, dtype, device, shape, {}, std::move(value), std::move(other));
  if (tied->is(Op::CONTIGUOUS_BACKWARD)) tied->kind_ = Kind::kTie;
  if (tied->read_count_ > 1) tied->read_count_ = 1;
  return tied;
}

Ref<Value> Value::make_guard(Ref<Value> index, Ref<Value> check, int64_t axis, int64_t size) {
  const Sizes shape(index->shape());
  const DType dtype = index->dtype();
  Device& device = index->device();
  Ref<Value> guard =
      make(Op::DETACH, dtype, device, shape, {axis, size}, std::move(index), std::move(check));
  if (guard->is(Op::DETACH)) guard->kind_ = Kind::kGuard;
  return guard;
}

Ref<Value> Value::make_with(const Payload& payload, Op op, Kind kind, DType dtype, Device& device,
                            Ints shape, int64_t number, Ref<Value> source) {
  Value* value = allocate(op, kind, dtype, device, shape, 1);
  int64_t* const at = value->tail() + value->rank_;
  *at = number;
  if (has_payload(kind)) new (at + 1) Payload(payload);
  Ref<Value> sources[kMostSources] = {std::move(source)};
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  value->set_sources(sources);
  value->read_count_ = is_empty ? 0 : value->source_count_;
  return Ref<Value>::adopt(value);
}

Ref<Value> Value::make_leaf(Ref<Value> version, int64_t number) {
  const Sizes shape(version->shape());
  const DType dtype = version->dtype();
  Device& device = version->device();
  Ref<Value> leaf = make_with({}, Op::CONTIGUOUS_BACKWARD, Kind::kLeaf, dtype, device, shape,
                              number, std::move(version));
  leaf->flags_ = kTracked;
  return leaf;
}

Ref<Value> Value::make_linked(Ref<Value> value, Ref<LinkedStep> step, size_t result) {
  const Sizes shape(value->shape());
  const DType dtype = value->dtype();
  Device& device = value->device();
  Ref<Value> linked = make_with({.step = step.detach()}, Op::CONTIGUOUS_BACKWARD, Kind::kLink,
                                dtype, device, shape, int64_t(result), std::move(value));
  linked->flags_ = kTracked;
  return linked;
}

Ref<Value> Value::make_output(DType dtype, Device& device, Ints shape, Ref<CustomKernel> kernel,
                              size_t output) {
  device.check_has(dtype);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    return make(Op::BUFFER, dtype, device, shape);
  }
  return make_with({.kernel = kernel.detach()}, Op::KERNEL, Kind::kOutput, dtype, device, shape,
                   int64_t(output));
}

Value::MadeCall Value::make_call(const Row& row, int64_t values, DType dtype, Device& device,
                                 Ints shape, size_t words,
                                 std::span<Ref<Value>, kMostSources> sources) {
  device.check_has(dtype);
  Value* call = allocate(Op::CONTIGUOUS_BACKWARD, Kind::kCall, dtype, device, shape, words);
  int64_t* const attributes = call->tail() + call->rank_;
  new (attributes + words) Payload{.row = &row, .values = values};
  call->set_sources(sources);
  call->read_count_ = call->source_count_;
  pending_count.fetch_add(call->pending_share() - 1, std::memory_order_relaxed);
  return {Ref<Value>::adopt(call), attributes};
}

void Value::open(Ref<Value> body, std::span<Ref<Value>, kMostSources> released) {
  pending_count.fetch_sub(pending_share() - 1, std::memory_order_relaxed);
  for (size_t i = 0; i < source_count_; i++) released[i] = std::move(sources_[i]);
  sources_[0] = std::move(body);
  source_count_ = read_count_ = 1;
  payload().values = 0;
}

Ref<Value> Value::make_filled(DType dtype, Device& device, Ints shape, Ref<Buffer> buffer) {
  device.check_has(dtype);
  Value* value = allocate(Op::BUFFER, Kind::kPlain, dtype, device, shape, 0);
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

namespace {

// 2*rank + 1 numbers are a view; 3 more, which makes them even, say how it is written.
constexpr size_t kScatterNumbers = 3;
size_t rank_of_view(size_t numbers) {
  return (numbers % 2 == 0 ? numbers - kScatterNumbers : numbers) / 2;
}

}  // namespace

std::optional<Value::Scatter> Value::scatter() const {
  const Ints all = numbers();
  if (all.size() % 2 != 0) return {};
  const Ints last = all.subspan(all.size() - kScatterNumbers);
  return Scatter{last[0], last[1], Op(last[2])};
}

View Value::written() const {
  const Ints all = numbers();
  const size_t rank = rank_of_view(all.size());
  return {dtype_, all.subspan(0, rank), all.subspan(rank, rank), all[2 * rank]};
}

const Ref<Buffer>& Value::buffer() const {
  if (failure_ != nullptr) throw IndexError(*failure_);
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
  if (is_tracked()) {
    const std::lock_guard lock(tape_mutex());
    buffer_ = std::move(buffer);
    settle(released);
  } else {
    buffer_ = std::move(buffer);
    for (size_t i = 0; i < source_count_; i++) released[i] = std::move(sources_[i]);
    source_count_ = 0;
  }
  set_filled();
}

// An empty slot, or one or more Storages: not pinned. What gradients read is not either: realising
// more would not let it go.
void Value::add_storage() noexcept {
  const uint32_t before = state_.fetch_add(kOneStorage, std::memory_order_acq_rel);
  if (before == kFilled) count_pinned(-1);
}

void Value::remove_storage() noexcept {
  const uint32_t before = state_.fetch_sub(kOneStorage, std::memory_order_acq_rel);
  if (before == (kFilled | kOneStorage)) count_pinned(1);
}

void Value::set_filled() noexcept {
  const uint32_t before = state_.fetch_or(kFilled, std::memory_order_acq_rel);
  if (before == 0) count_pinned(1);
}

void Value::count_pinned(int64_t sign) const noexcept {
  if (!is_tracked()) pinned_count.fetch_add(sign * bytes(), std::memory_order_relaxed);
}

int64_t Value::bytes() const { return int64_t(uint64_t(numel()) * uint64_t(dtype_.item_bytes())); }

// --------------------------------------------------------------------------------------- the tape

uint8_t Value::flags_of(const Value& value) {
  const bool is_on = gradients_are_on();
  uint8_t flags = is_on ? 0 : kUntaped;
  if (!value.dtype_.is_float() || value.is(Op::DETACH)) return flags;
  const size_t passed = is_on ? value.source_count_ : value.is(Op::AFTER) ? 1 : 0;
  for (size_t i = 0; i < passed; i++) flags |= value.sources_[i]->flags_ & kTracked;
  return flags;
}

uint8_t Value::gradient_reads() const {
  const auto tracks = [&](size_t i) { return sources_[i] && sources_[i]->is_tracked(); };
  const uint8_t all = info(op_).gradient_reads;
  if (is_untaped()) return 0;
  if (op_ == Op::MUL) return uint8_t((tracks(1) ? kReadsS0 : 0) | (tracks(0) ? kReadsS1 : 0));
  if (op_ == Op::FDIV && !tracks(1)) return kReadsS1;
  if (op_ == Op::REDUCE_AXIS && Op(numbers()[0]) == Op::ADD) return 0;
  if (op_ == Op::SCAN && Op(numbers()[0]) == Op::ADD) {
    return source_count_ < 2 ? 0 : uint8_t(kReadsS1 | (tracks(1) ? kReadsOut : 0));
  }
  if (op_ == Op::AFTER) {
    const std::optional<Scatter> how = scatter();
    const bool is_sum = !how || !how->combines() || how->op == Op::ADD;
    return is_sum ? (source_count_ == 3 ? kReadsS2 : 0)
                  : kReadsS0 | kReadsS1 | kReadsS2 | kReadsOut;
  }
  return all;
}

bool Value::keeps_data_of(size_t i) const {
  const Value& source = *sources_[i];
  return (gradient_reads() >> i & 1) != 0 ||
         (source.is_tracked() && (source.gradient_reads() & kReadsOut) != 0);
}

void Value::settle(std::span<Ref<Value>, kMostSources> released) {
  for (size_t i = 0; i < source_count_; i++) {
    Ref<Value>& source = sources_[i];
    if (!source || (step_mask_ >> i & 1) != 0 || keeps_data_of(i)) continue;
    if (!source->is_tracked()) {
      released[i] = std::move(source);
    } else {
      retain_step(source.get());
      released[i] = Ref<Value>::adopt(source.get());
      step_mask_ |= uint8_t(1U << i);
    }
  }
}

// ---------------------------------------------------------------------------------------- freeing

void retain(Value* value) noexcept { value->owners_.fetch_add(1, std::memory_order_relaxed); }

void release(Value* value) noexcept {
  if (value->owners_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  value->next_ = nullptr;
  Value::free_all(value);
}

void Value::retain_step(Value* value) noexcept {
  value->steps_.fetch_add(1, std::memory_order_relaxed);
}

void Value::release_step(Value* value) noexcept {
  if (value->steps_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  value->next_ = nullptr;
  Value::free_all(value);
}

// A step that nobody owns: its memory goes, and what is put before `more` has no owners any more.
void Value::drop_data(Value*& more) noexcept {
  std::array<Ref<Value>, kMostSources> released;
  Ref<Buffer> buffer;
  {
    const std::lock_guard lock(tape_mutex());
    buffer = std::move(buffer_);
    settle(released);
  }
  for (Ref<Value>& source : released) {
    Value* value = source.detach();
    if (value == nullptr || value->owners_.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    value->next_ = more;
    more = value;
  }
}

// Frees a list, and what only its members held, however deep that goes. Each has no owners any
// more, or, where its steps are counted down to 0, nobody at all.
void Value::free_all(Value* first) noexcept {
  while (first != nullptr) {
    Value* value = first;
    first = value->next_;
    if (value->steps_.load(std::memory_order_acquire) != 0) {
      const int64_t share = value->pending_share() - (value->buffer_ ? 1 : 0);
      if (share != 0) pending_count.fetch_sub(share, std::memory_order_relaxed);
      if (value->state_.load(std::memory_order_relaxed) == kFilled) value->count_pinned(-1);
      if (value->steps_.load(std::memory_order_acquire) > 1) value->drop_data(first);
      if (value->steps_.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    }
    for (size_t i = 0; i < value->source_count_; i++) {
      Value* source = value->sources_[i].detach();
      if (source == nullptr) continue;
      const bool is_step = (value->step_mask_ >> i & 1) != 0;
      std::atomic<uint32_t>& count = is_step ? source->steps_ : source->owners_;
      if (count.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      source->next_ = first;
      first = source;
    }
    if (LinkedStep* step = value->linked_step()) release(step);
    if (CustomKernel* kernel = value->custom_kernel()) release(kernel);
    value->~Value();
    count_live_value(-1);
    detail::forget_site(value);
    ::operator delete(value);
  }
}

}  // namespace weft
