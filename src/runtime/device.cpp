// The devices that there are.
#include "runtime/device.h"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/config.h"
#include "base/error.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "rewrite/pattern.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/debug.h"
#include "runtime/opencl/opencl_device.h"
#include "runtime/program.h"
#include "runtime/webgpu/webgpu_device.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

// Devices that depend on a driver, which is loaded when one is asked for.
struct Family {
  std::string_view name;  // of its first device; those of others begin with it and a colon
  std::vector<Device*> (*devices)();
  std::string (*missing)();  // why there is none
};
constexpr Family kFamilies[] = {
    {"CUDA", cuda_devices, cuda_missing},
    {"OPENCL", opencl_devices, opencl_missing},
    {"WEBGPU", webgpu_devices, webgpu_missing},
};

std::vector<Device*> own_devices() {
  return {&cpu_device(), &cpu_llvm_device(), &cpu_c_device(),
          &ref_device(), &null_device(),     &null_cuda_device()};
}

std::string names_of(const std::vector<Device*>& devices) {
  std::vector<std::string_view> names;
  names.reserve(devices.size());
  for (const Device* device : devices) names.push_back(device->name());
  return fmt::format("{}", fmt::join(names, ", "));
}

Device* find_among(const std::vector<Device*>& devices, std::string_view name) {
  for (Device* device : devices) {
    if (device->name() == name) return device;
  }
  return nullptr;
}

// Null until it is asked for the first time.
std::atomic<Device*> the_default = nullptr;

Device& look_up(std::string_view name) {
  const std::string_view family = name.substr(0, name.find(':'));
  for (const Family& each : kFamilies) {
    if (each.name != family) continue;
    const std::vector<Device*> devices = each.devices();
    if (Device* device = find_among(devices, name)) return *device;
    throw DeviceError(
        devices.empty()
            ? fmt::format("[{}] there is no such device: {}", name, each.missing())
            : fmt::format("[device] there is no device {}; there are {}", name, names_of(devices)));
  }
  if (Device* device = find_among(own_devices(), name)) return *device;
  std::vector<std::string_view> families;
  for (const Family& each : kFamilies) families.push_back(each.name);
  throw DeviceError(
      fmt::format("[device] there is no device {}; there are {}, and with a driver {}", name,
                  names_of(own_devices()), fmt::join(families, ", ")));
}

Device& find_by_name(std::string_view name) {
  Device& device = look_up(name);
  device.start();
  if (shows(1)) show_device(name, device.description());
  return device;
}

}  // namespace

const KernelLimits& Device::limits() const {
  static const KernelLimits kLimits;
  return kLimits;
}

std::shared_ptr<Program> Device::compile_list(UOp, std::string_view) {
  throw DeviceError(fmt::format("[{}] it runs no programs from their lists", name_));
}

void Device::refuse(DType type) const {
  throw DTypeError(fmt::format("[{0}] the device {0} has no {1}; use another dtype or device",
                               name_, type.name()));
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const DeviceEntry& entry : device_list()) {
    if (entry.missing.empty()) names.push_back(entry.name);
  }
  return names;
}

std::vector<DeviceEntry> device_list() {
  std::vector<DeviceEntry> list;
  const auto add = [&](const std::vector<Device*>& devices) {
    for (const Device* device : devices) {
      list.push_back({device->name(), device->description(), device->missing()});
    }
  };
  add(own_devices());
  for (const Family& family : kFamilies) {
    const std::vector<Device*> devices = family.devices();
    add(devices);
    if (devices.empty()) list.push_back({std::string(family.name), {}, family.missing()});
  }
  return list;
}

std::vector<DType> missing_dtypes(std::string_view name) {
  const DTypeSet missing = find_device(name).missing_dtypes();
  std::vector<DType> types;
  for (int s = 0; s < kScalarCount; s++) {
    if ((missing & set_of(Scalar(s))) != 0) types.push_back({Scalar(s)});
  }
  return types;
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

void synchronize(std::string_view name) { find_device(name).synchronize(); }

}  // namespace weft
