// What PyTorch asks of a device: guards, streams that are all one, and hooks.
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include <ATen/core/Generator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include "accelerator.h"
#include "generator.h"
#include "storage.h"

namespace weft::pytorch {
namespace {

constexpr auto kDeviceType = c10::DeviceType::PrivateUse1;
c10::Device the_device() { return c10::Device(kDeviceType, 0); }

void check_index(c10::DeviceIndex index) {
  TORCH_CHECK(index <= 0, "weft: invalid device ordinal ", int(index), "; there is one device");
}

// Work is in the order of the program: streams and events have nothing to wait for but its end.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  Guard() = default;
  c10::DeviceType type() const override { return kDeviceType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    check_index(device.index());
    return the_device();
  }
  c10::Device getDevice() const override { return the_device(); }
  void setDevice(c10::Device device) const override { check_index(device.index()); }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  // What autograd notes of every tensor has the stream that its device is on.
  c10::Stream getStream(c10::Device) const noexcept override {
    enter_autograd();
    return stream();
  }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return stream(); }
  c10::DeviceIndex deviceCount() const noexcept override { return devices_in_autograd(); }
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { synchronize(); }
  void synchronizeEvent(void*) const override { synchronize(); }
  void synchronizeDevice(c10::DeviceIndex) const override { synchronize(); }
  void destroyEvent(void*, c10::DeviceIndex) const noexcept override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
  double elapsedTime(void*, void*, c10::DeviceIndex) const override { return 0.0; }

 private:
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, the_device()); }
};

// Pinned memory is the process's own, which a copy to the device reads at once: it is pinned in
// name. `first byte -> bytes` of what lives.
class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* const data = c10::alloc_cpu(bytes);
    const std::lock_guard lock(mutex());
    if (data != nullptr) live().emplace(reinterpret_cast<uintptr_t>(data), bytes);
    return {data, data, &free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  static bool holds(const void* data) {
    const std::lock_guard lock(mutex());
    const auto address = reinterpret_cast<uintptr_t>(data);
    auto at = live().upper_bound(address);
    if (at == live().begin()) return false;
    --at;
    return address < at->first + at->second;
  }

 private:
  static void free(void* data) {
    {
      const std::lock_guard lock(mutex());
      live().erase(reinterpret_cast<uintptr_t>(data));
    }
    c10::free_cpu(data);
  }
  // They outlive every tensor.
  static std::map<uintptr_t, size_t>& live() {
    static auto* const kLive = new std::map<uintptr_t, size_t>;
    return *kLive;
  }
  static std::mutex& mutex() {
    static auto* const kMutex = new std::mutex;
    return *kMutex;
  }
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  void setCurrentDevice(c10::DeviceIndex index) const override { check_index(index); }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    check_index(index);
    return 0;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    check_index(index);
    return default_generator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    check_index(index);
    return at::make_generator<GeneratorImpl>(0);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    static PinnedMemory allocator;
    return &allocator;
  }
  bool isPinnedPtr(const void* data) const override { return PinnedMemory::holds(data); }
  at::Device getDeviceFromPtr(void*) const override { return the_device(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_bytes(*storage.unsafeGetStorageImpl(), bytes);
  }
};

bool register_hooks() noexcept {
  // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): a library without memory to load ends
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}
[[maybe_unused]] const bool kIsRegistered = register_hooks();

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace weft::pytorch
