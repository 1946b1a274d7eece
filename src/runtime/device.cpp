// The devices that there are.
#include "runtime/device.h"

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/config.h"
#include "base/error.h"
#include "ir/dtype.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/debug.h"
#include "runtime/webgpu/webgpu_device.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

std::vector<Device*> all_devices() {
  return {&cpu_device(),    &cpu_llvm_device(), &cpu_c_device(),
          &webgpu_device(), &ref_device(),      &null_device()};
}

// Null until it is asked for the first time.
std::atomic<Device*> the_default = nullptr;

Device& find_by_name(std::string_view name) {
  for (Device* device : all_devices()) {
    if (device->name() != name) continue;
    device->start();
    if (shows(1)) show_device(name, device->description());
    return *device;
  }
  throw DeviceError(fmt::format("[device] there is no device {}; there are {}", name,
                                fmt::join(device_names(), ", ")));
}

}  // namespace

const KernelLimits& Device::limits() const {
  static const KernelLimits kLimits;
  return kLimits;
}

void Device::refuse(DType type) const {
  throw DTypeError(fmt::format("[{0}] the device {0} has no {1}; use another dtype or device",
                               name_, type.name()));
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Device* device : all_devices()) names.push_back(device->name());
  return names;
}

Device& find_device(std::string_view name) {
  if (!name.empty()) return find_by_name(name);
  Device* device = the_default.load(std::memory_order_acquire);
  if (device == nullptr) {
    device = &find_by_name(config().device);
    the_default = device;
  }
  return *device;
}

std::string default_device() { return find_device({}).name(); }

void set_default_device(std::string_view name) { the_default = &find_by_name(name); }

}  // namespace weft
