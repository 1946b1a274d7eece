// The primary context of each GPU.
#include "runtime/cuda/cuda_context.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/cuda/cuda_functions.h"

namespace weft {
namespace {

const CudaFunctions& cuda() { return CudaDriver::get().functions(); }

// After these the driver refuses all further work of a context: what a kernel did wrong, and what
// the hardware did.
constexpr CudaResult kFatal[] = {4,   214, 220, 226, 700, 702, 709, 710,
                                 714, 715, 716, 717, 718, 719, 721, 999};

bool is_fatal(CudaResult result) { return std::ranges::find(kFatal, result) != std::end(kFatal); }

std::string readable(size_t bytes) {
  constexpr double gib = double(1 << 30), mib = double(1 << 20);
  const auto size = double(bytes);
  return size >= gib ? fmt::format("{:.2f} GiB", size / gib)
                     : fmt::format("{:.1f} MiB", size / mib);
}

}  // namespace

// ----------------------------------------------------------------------------------------- context

CudaContext::Scope::Scope(const CudaContext& context) {
  CudaContextHandle current = nullptr;
  cuda().context_current(&current);
  is_pushed_ = current != context.handle_ && cuda().context_push(context.handle_) == 0;
}

CudaContext::Scope::~Scope() {
  CudaContextHandle popped = nullptr;
  if (is_pushed_) cuda().context_pop(&popped);
}

CudaContext::CudaContext(CudaGpu& gpu)
    : gpu_(gpu),
      memory_(*this),
      allocator_(gpu.name(), gpu.bytes(), gpu.bytes() / 2, memory_),
      staging_(*this) {
  check(cuda().context_retain(&handle_, gpu.ordinal()), "to make a context");
  const Scope scope(*this);
  check(cuda().stream_create(&stream_, kStreamNonBlocking), "to make a stream");
  check(cuda().event_create(&event_, kEventWithoutTiming), "to make an event");
}

std::string CudaContext::why_lost() const {
  const std::lock_guard lock(mutex_);
  return why_lost_;
}

void CudaContext::fail(CudaResult result, std::string_view what) {
  const std::string error = CudaDriver::get().text_of(result);
  if (!is_fatal(result)) throw DeviceError(fmt::format("[{}] {}: {}", gpu_.name(), what, error));
  const std::lock_guard lock(mutex_);
  if (!is_lost()) {
    why_lost_ = fmt::format("{}: {}", last_kernels(), error);
    is_lost_.store(true, std::memory_order_release);
  }
  throw DeviceError(fmt::format("[{}] {}; what was in the memory of this device is lost",
                                gpu_.name(), why_lost_));
}

std::string CudaContext::last_kernels() const {
  const uint64_t count = started_;
  if (count == 0) return "the device failed";
  std::string names;
  for (uint64_t i = 0; i < std::min<uint64_t>(count, kNames); i++) {
    const std::string* name = names_[(count - 1 - i) % kNames];
    if (name != nullptr) names += fmt::format("{}{}", names.empty() ? "" : ", ", *name);
  }
  if (count == 1) return fmt::format("the kernel {} failed", names);
  return fmt::format(
      "one of the last {} kernels failed (newest first {}{}; WEFT_DEBUG=2 waits for "
      "each and names it)",
      count, names, count > kNames ? ", ..." : "");
}

void CudaContext::started(const std::string& kernel) {
  names_[started_.fetch_add(1, std::memory_order_relaxed) % kNames].store(
      &kernel, std::memory_order_relaxed);
}

void CudaContext::copy_in(CudaAddress to, std::span<const std::byte> from) {
  if (from.empty()) return;
  const Scope scope(*this);
  staging_.copy_in(to, from);
}

void CudaContext::copy_out(std::span<std::byte> to, CudaAddress from) {
  if (to.empty()) return;
  const Scope scope(*this);
  staging_.copy_out(to, from);
  started_ = 0;
}

void CudaContext::copy(CudaAddress to, const CudaMemory& from, size_t bytes) {
  if (bytes == 0) return;
  CudaContext& other = *from.context;
  const Scope scope(*this);
  if (&other == this) {
    check(cuda().copy_on_device(to, from.address, bytes, stream_), "a copy");
    return;
  }
  wait_for(other);
  check(cuda().copy_to_peer(to, handle_, from.address, other.handle_, bytes, stream_),
        "a copy from another device");
  other.wait_for(*this);  // its memory is not written again before
}

void CudaContext::wait_for(CudaContext& other) {
  {
    const Scope scope(other);
    const std::lock_guard lock(other.mutex_);
    if (std::ranges::find(other.peers_, this) == other.peers_.end()) {
      other.peers_.push_back(this);
      cuda().enable_peer(handle_, 0);  // where it is refused the driver copies by the host's memory
    }
    const CudaResult result = cuda().event_record(other.event_, other.stream_);
    if (result == 0) {
      const Scope own(*this);
      check(cuda().stream_wait(stream_, other.event_, 0), "to wait for another device");
      return;
    }
    throw DeviceError(fmt::format("[{}] to wait for another device: {}", other.gpu_.name(),
                                  CudaDriver::get().text_of(result)));
  }
}

void CudaContext::synchronize() {
  const Scope scope(*this);
  check(cuda().stream_synchronize(stream_), "to wait for it");
  started_ = 0;
}

// ------------------------------------------------------------------------------------------ memory

void* CudaContext::Memory::allocate(size_t bytes) {
  const Scope scope(context_);
  CudaAddress address = 0;
  const CudaResult result = cuda().memory_allocate(&address, bytes);
  if (result == kCudaOutOfMemory) return nullptr;
  context_.check(result, "to get memory");
  auto* const memory = new (std::nothrow) CudaMemory{address, &context_};
  if (memory == nullptr) cuda().memory_free(address);
  return memory;
}

void CudaContext::Memory::free(void* memory, size_t) noexcept {
  auto* const held = static_cast<CudaMemory*>(memory);
  if (!context_.is_lost()) {
    const Scope scope(context_);
    cuda().memory_free(held->address);
  }
  delete held;
}

std::string CudaContext::Memory::state() const {
  const Scope scope(context_);
  size_t free = 0, total = 0;
  if (cuda().memory_info(&free, &total) != 0) return {};
  return fmt::format("; on the device {} of {} are free", readable(free), readable(total));
}

// --------------------------------------------------------------------------------------------- GPU

const std::vector<CudaGpu*>& CudaGpu::all() {
  static const auto* const kAll = [] {  // they live until the process ends
    auto* const found = new std::vector<CudaGpu*>;
    const CudaDriver& driver = CudaDriver::get();
    for (int i = 0; driver.missing().empty() && i < driver.device_count(); i++) {
      found->push_back(new CudaGpu(i));
    }
    return found;
  }();
  return *kAll;
}

CudaGpu::CudaGpu(int number)
    : name_(number == 0 ? std::string("CUDA") : fmt::format("CUDA:{}", number)) {
  cuda().device_get(&ordinal_, number);
  std::array<char, 256> product{};
  cuda().device_name(product.data(), int(product.size()) - 1, ordinal_);
  product_ = product.data();
  const auto attribute = [&](int which) {
    int value = 0;
    cuda().device_attribute(&value, which, ordinal_);
    return value;
  };
  architecture_ = attribute(kMajor) * 10 + attribute(kMinor);
  multiprocessors_ = attribute(kMultiprocessors);
  most_shared_bytes_ = std::max(attribute(kMostSharedBytes), attribute(kSharedBytesPerBlock));
  size_t bytes = 0;
  cuda().device_memory(&bytes, ordinal_);
  bytes_ = int64_t(bytes);
}

CudaContext& CudaGpu::context() {
  if (cuda_is_of_parent()) {
    throw DeviceError(fmt::format(
        "[{}] this process is a fork of one that uses CUDA, which cannot go on in it; start the "
        "process anew (multiprocessing's method spawn), or fork before the first use of CUDA",
        name_));
  }
  CudaContext* context = context_.load(std::memory_order_acquire);
  return context != nullptr && !context->is_lost() ? *context : make_context();
}

CudaContext& CudaGpu::make_context() {
  const std::lock_guard lock(mutex_);
  CudaContext* const old = context_;
  if (old != nullptr && !old->is_lost()) return *old;
  const auto give_up = [&](std::string_view why) {
    dead_ = fmt::format(
        "[{}] {}; the driver does not start the device anew in this process ({}): "
        "use it from another one",
        name_, old->why_lost(), why);
    throw DeviceError(dead_);
  };
  if (!dead_.empty()) throw DeviceError(dead_);
  if (old != nullptr) {
    const CudaResult result = cuda().context_reset(ordinal_);
    if (result != 0) give_up(CudaDriver::get().text_of(result));
  }
  try {
    auto* const made = new CudaContext(*this);
    if (old != nullptr) lost_.push_back(old);
    context_.store(made, std::memory_order_release);
    return *made;
  } catch (const DeviceError& e) {
    if (old != nullptr) give_up(e.what());
    throw;
  }
}

const CudaMemory& CudaGpu::memory(const void* of_buffer) {
  CudaContext& now = context();
  const auto& memory = *static_cast<const CudaMemory*>(of_buffer);
  if (memory.context != &now) {
    throw DeviceError(
        fmt::format("[{}] this memory was lost: {}", name_, memory.context->why_lost()));
  }
  return memory;
}

void CudaGpu::free(void* of_buffer, size_t bytes) noexcept {
  if (of_buffer == nullptr || cuda_is_of_parent()) return;
  static_cast<CudaMemory*>(of_buffer)->context->allocator().free(of_buffer, bytes);
}

}  // namespace weft
