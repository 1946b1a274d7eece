// Platforms, devices, and what they say.
#include "runtime/opencl/opencl_library.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/at_fork.h"
#include "base/dynamic_library.h"
#include "base/error.h"
#include "runtime/opencl/opencl_functions.h"

namespace weft::cl {
namespace {

struct ErrorName {
  int32_t code;
  const char* name;
};
constexpr ErrorName kErrors[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, "CL_INVALID_VALUE"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-42, "CL_INVALID_BINARY"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-48, "CL_INVALID_KERNEL"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

constexpr const char* kInstall =
    "install an OpenCL driver (on Debian, for the CPU: apt install pocl-opencl-icd)";

std::atomic<bool> is_lost = false;
std::atomic<pid_t> owner = 0;

template <class T>
T device_number(const Functions& call, DeviceId id, uint32_t what, T otherwise = {}) {
  T value = otherwise;
  return call.clGetDeviceInfo(id, what, sizeof value, &value, nullptr) == kSuccess ? value
                                                                                   : otherwise;
}

template <class Get>
std::string text_of(const Get& get) {
  size_t bytes = 0;
  if (get(0, nullptr, &bytes) != kSuccess || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (get(bytes, text.data(), nullptr) != kSuccess) return {};
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string device_text(const Functions& call, DeviceId id, uint32_t what) {
  return text_of([&](size_t bytes, void* to, size_t* needed) {
    return call.clGetDeviceInfo(id, what, bytes, to, needed);
  });
}

std::string platform_text(const Functions& call, Platform id, uint32_t what) {
  return text_of([&](size_t bytes, void* to, size_t* needed) {
    return call.clGetPlatformInfo(id, what, bytes, to, needed);
  });
}

Facts facts_of(const Functions& call, Platform platform, DeviceId id) {
  Facts f;
  f.id = id;
  f.platform = platform;
  f.name = device_text(call, id, kDeviceName);
  f.driver = device_text(call, id, kDriverVersion);
  f.version = device_text(call, id, kDeviceVersion);
  f.platform_name = platform_text(call, platform, kPlatformName);
  f.platform_version = platform_text(call, platform, kPlatformVersion);
  f.type = device_number<uint64_t>(call, id, kDeviceType);
  f.compute_units = device_number<uint32_t>(call, id, kDeviceComputeUnits, 1);
  f.group_size = device_number<size_t>(call, id, kDeviceGroupSize, 1);
  f.group_sizes.resize(3, 1);
  size_t bytes = 0;
  if (call.clGetDeviceInfo(id, kDeviceGroupSizes, 0, nullptr, &bytes) == kSuccess) {
    std::vector<size_t> sizes(std::max<size_t>(bytes / sizeof(size_t), 3), 1);
    call.clGetDeviceInfo(id, kDeviceGroupSizes, bytes, sizes.data(), nullptr);
    f.group_sizes.assign(sizes.begin(), sizes.begin() + 3);
  }
  const bool is_gpu = (f.type & kDeviceTypeGpu) != 0;
  const auto wavefront = device_number<uint32_t>(call, id, kDeviceWavefrontAmd, is_gpu ? 32 : 8);
  f.warp = device_number<uint32_t>(call, id, kDeviceWarpNv, wavefront);
  f.memory = device_number<uint64_t>(call, id, kDeviceMemory);
  f.max_allocation = device_number<uint64_t>(call, id, kDeviceMaxAllocation);
  f.local_memory = device_number<uint64_t>(call, id, kDeviceLocalMemory);
  f.max_parameter_bytes = device_number<size_t>(call, id, kDeviceMaxParameterBytes, 1024);
  f.single_config = device_number<uint64_t>(call, id, kDeviceSingleConfig);
  f.double_config = device_number<uint64_t>(call, id, kDeviceDoubleConfig);
  return f;
}

// Empty: nothing is.
std::string what_is_wrong(const Functions& call, const Facts& f) {
  if (device_number<uint32_t>(call, f.id, kDeviceIsAvailable) == 0) return "is not available";
  if (device_number<uint32_t>(call, f.id, kDeviceHasCompiler) == 0) return "has no compiler";
  if (device_number<uint32_t>(call, f.id, kDeviceIsLittleEndian) == 0) return "is big-endian";
  if (device_text(call, f.id, kDeviceProfile) != "FULL_PROFILE") {
    return "has the embedded profile, perhaps without 64-bit integers";
  }
  if (f.version.starts_with("OpenCL 1.0") || f.version.starts_with("OpenCL 1.1")) {
    return "is older than OpenCL 1.2";
  }
  return {};
}

Library load() {
  Library out;
  const DynamicLibrary file = DynamicLibrary::open("libOpenCL.so.1");
  if (!file) {
    out.missing =
        fmt::format("there is no libOpenCL.so.1: {} and a loader (ocl-icd-libopencl1)", kInstall);
    return out;
  }
  const char* lacking = nullptr;
#define WEFT_LOAD(name, result, parameters)                \
  out.call.name = file.function<result parameters>(#name); \
  if (out.call.name == nullptr) lacking = #name;
  WEFT_OPENCL_FUNCTIONS(WEFT_LOAD)
#undef WEFT_LOAD
  if (lacking != nullptr) {
    out.missing = fmt::format("libOpenCL.so.1 has no {}: it is older than OpenCL 1.2", lacking);
    return out;
  }
  owner = getpid();
  at_fork(ForkOrder::kOpenCl, [] {}, [] { is_lost = is_lost || getpid() != owner; });
  uint32_t count = 0;
  const int32_t code = out.call.clGetPlatformIDs(0, nullptr, &count);
  if (code != kSuccess || count == 0) {
    out.missing = fmt::format("OpenCL knows no platform: {}", kInstall);
    return out;
  }
  std::vector<Platform> platforms(count);
  out.call.clGetPlatformIDs(count, platforms.data(), nullptr);
  for (Platform platform : platforms) {
    uint32_t devices = 0;
    if (out.call.clGetDeviceIDs(platform, kDeviceTypeAll, 0, nullptr, &devices) != kSuccess) {
      continue;
    }
    std::vector<DeviceId> ids(devices);
    out.call.clGetDeviceIDs(platform, kDeviceTypeAll, devices, ids.data(), nullptr);
    for (DeviceId id : ids) {
      Facts facts = facts_of(out.call, platform, id);
      const std::string wrong = what_is_wrong(out.call, facts);
      if (wrong.empty()) {
        out.devices.push_back(std::move(facts));
      } else {
        out.missing += fmt::format("{}{} {}", out.missing.empty() ? "" : "; ", facts.name, wrong);
      }
    }
  }
  if (out.devices.empty() && out.missing.empty()) {
    out.missing = fmt::format("OpenCL knows no device: {}", kInstall);
  }
  return out;
}

}  // namespace

const Library& library() {
  static const Library& instance = *new Library(load());
  return instance;
}

std::string error_text(int32_t code) {
  for (const ErrorName& e : kErrors) {
    if (e.code == code) return fmt::format("{} ({})", e.name, code);
  }
  return fmt::format("error {}", code);
}

bool is_lost_by_fork() noexcept { return is_lost.load(std::memory_order_relaxed); }

void check_process() {
  if (!is_lost_by_fork()) return;
  throw DeviceError(
      "[OPENCL] the process that used OpenCL before it forked has it alone; start processes anew "
      "(multiprocessing: the start method \"spawn\"), or fork before the first use");
}

}  // namespace weft::cl
